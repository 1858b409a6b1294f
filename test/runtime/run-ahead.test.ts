import { describe, expect, it } from "vitest";
import { z } from "zod";
import {
  type AgentDefinition,
  createRuntime,
  defineAgent,
  defineTool,
  memoryStores,
  type RunContext,
  subagent,
} from "../../src/index.ts";
import type { EntryType } from "../../src/state/index.ts";
import type { Stores } from "../../src/stores/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { entriesOfType, toolTextsOf } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling, createGate } from "../support/turn-probes.ts";

/** Stores that note the types of the entries of each commit. */
function watchedStores(): { readonly stores: Stores; readonly commits: EntryType[][] } {
  const stores = memoryStores();
  const commits: EntryType[][] = [];
  const commit: Stores["commit"] = async (batches, ...rest) => {
    commits.push(batches.flatMap(({ entries }) => entries.map(({ type }) => type)));
    return await stores.commit(batches, ...rest);
  };
  return { stores: { ...stores, commit }, commits };
}

interface Traits {
  readonly effect?: "none" | "keyed";
  readonly concurrency?: number;
  readonly execute?: (run: RunContext) => unknown;
}

function lookup({ effect = "none", concurrency, execute = () => "found" }: Traits = {}) {
  const parameters = z.object({});
  return defineTool({
    name: "lookup",
    description: "Looks up.",
    effect,
    concurrency,
    parameters,
    execute: (_given, run) => execute(run),
  });
}

type Changes = Partial<Pick<Parameters<typeof defineAgent>[0], "tools" | "budget" | "hooks">>;

function worker(changes: Changes = {}): AgentDefinition {
  return defineAgent({
    name: "worker",
    model: scriptedModel([calling("lookup"), "done"]),
    tools: [lookup()],
    ...changes,
  });
}

/** The types of the commit with the beginning of the call. */
async function commitOfStart(definition: AgentDefinition): Promise<readonly EntryType[]> {
  const { stores, commits } = watchedStores();
  const runtime = await createRuntime({ agents: [definition], stores });
  const agent = await runtime.agent(definition.name);
  await agent.start();
  expect((await agent.executeTurn("go").result).text).toBe("done");
  await runtime.shutdown();
  const found = commits.find((types) => types.includes("tool.started"));
  if (!found) throw new Error("no call was begun");
  return found;
}

describe("a call that may run ahead of its commit", () => {
  it("is stored with its answer, its result and the next intent", async () => {
    expect(await commitOfStart(worker())).toEqual([
      "model.responded",
      "tool.started",
      "tool.settled",
      "model.requested",
    ]);
  });

  const lead = (budget: Changes["budget"]): AgentDefinition =>
    defineAgent({
      name: "lead",
      model: scriptedModel([calling({ name: "worker", arguments: { input: "look" } }), "done"]),
      tools: [subagent(worker(), { description: "Works." })],
      budget,
    });

  it.each([
    ["its effect reaches outside", worker({ tools: [lookup({ effect: "keyed" })] })],
    ["its tool has slots", worker({ tools: [lookup({ concurrency: 1 })] })],
    ["a hook looks at it first", worker({ hooks: { beforeEachTool: () => undefined } })],
    ["its turn may make so many calls", worker({ budget: { maxToolCalls: 5 } })],
    ["its turn's tree may make so many calls", worker({ budget: { maxTreeToolCalls: 5 } })],
    ["the tree of an agent above may make so many calls", lead({ maxTreeToolCalls: 5 })],
  ])("waits for its commit where %s", async (_why, definition) => {
    expect(await commitOfStart(definition)).not.toContain("tool.settled");
  });

  it("runs ahead in a subagent too", async () => {
    expect(await commitOfStart(lead({ maxSteps: 5 }))).toContain("tool.settled");
  });

  it("shows its progress between its beginning and its end", async () => {
    const tool = lookup({
      execute: (run) => {
        run.progress("half");
        return "found";
      },
    });
    const runtime = await createRuntime({ agents: [worker({ tools: [tool] })] });
    const agent = await runtime.agent("worker");
    await agent.start();
    const seen: string[] = [];
    for await (const { type } of agent.executeTurn("go")) if (type.startsWith("tool.")) seen.push(type);
    await runtime.shutdown();
    expect(seen).toEqual(["tool.started", "tool.progress", "tool.completed"]);
  });

  it("finds the answer that called it in its trace, and in the stores after its first note", async () => {
    const stored: number[] = [];
    const tool = lookup({
      execute: async (run) => {
        expect(run.trace.map(({ type }) => type)).toContain("llm_call");
        await run.note("begun");
        stored.push((await agent.getMessages()).length);
        return "found";
      },
    });
    const runtime = await createRuntime({ agents: [worker({ tools: [tool] })] });
    const agent = await runtime.agent("worker");
    await agent.start();
    expect((await agent.executeTurn("go").result).text).toBe("done");
    await runtime.shutdown();
    expect(stored).toEqual([2]);
  });
});

describeRuntimes("a call that ran ahead of a commit that refused it", (stage) => {
  async function begin(execute: (run: RunContext) => unknown) {
    const runtime = await stage().open({ agents: [worker({ tools: [lookup({ execute })] })] });
    const agent = await runtime.agent("worker", { agentId: "w" });
    await agent.start();
    return { agent, refused: () => entriesOfType(stage().look(), "w", "intent.refused") };
  }

  it("keeps its result, if it had ended", async () => {
    let pausing: Promise<unknown> | undefined;
    const { agent, refused } = await begin(() => {
      pausing = agent.pause();
      return "found";
    });
    const turn = agent.executeTurn("go");
    expect(await turn.settled).toMatchObject({ status: "waiting", reason: "paused" });
    await pausing;
    expect(await refused()).toMatchObject([{ intent: "tool.started" }, { intent: "model.requested" }]);
    await agent.resume();
    expect((await turn.result).text).toBe("done");
    expect(await toolTextsOf(agent)).toEqual(["found"]);
  });

  it("is cut, and runs again after the pause, if it had not", async () => {
    const gate = createGate<string>();
    const signals: AbortSignal[] = [];
    const { agent, refused } = await begin(async (run) => {
      signals.push(run.signal);
      if (signals.length > 1) return "found";
      void agent.pause();
      return await gate.pass();
    });
    const turn = agent.executeTurn("go");
    expect(await turn.settled).toMatchObject({ status: "waiting", reason: "paused" });
    expect(signals.map(({ aborted }) => aborted)).toEqual([true]);
    expect(await refused()).toMatchObject([{ intent: "tool.started", reason: "paused" }]);
    gate.open("late");
    await agent.resume();
    expect(await turn.result).toMatchObject({ text: "done", toolCalls: 1 });
    expect(signals).toHaveLength(2);
    expect(await toolTextsOf(agent)).toEqual(["found"]);
  });

  it("ends with its turn, if that was aborted", async () => {
    const { agent, refused } = await begin(() => {
      void agent.abort();
      return "found";
    });
    expect((await agent.executeTurn("go").result).status).toBe("stopped");
    expect((await refused())[0]).toMatchObject({ intent: "tool.started", reason: "aborted" });
    expect(await entriesOfType(stage().look(), "w", "tool.settled")).toHaveLength(1);
    expect((await agent.executeTurn("again").result).status).toBe("completed");
  });
});
