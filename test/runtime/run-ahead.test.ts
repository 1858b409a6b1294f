import { describe, expect, it } from "vitest";
import { z } from "zod";
import { type Budget, createRuntime, defineAgent, defineTool, memoryStores, type RunContext } from "../../src/index.ts";
import type { EntryType } from "../../src/state/index.ts";
import type { Stores } from "../../src/stores/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { entriesOf, toolTextsOf } from "../support/journal-probes.ts";
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

function lookup(execute: (run: RunContext) => unknown, effect: "none" | "keyed" = "none") {
  const parameters = z.object({});
  return defineTool({
    name: "lookup",
    description: "Looks up.",
    effect,
    parameters,
    execute: (_given, run) => execute(run),
  });
}

/** The types of the commit with the beginning of the call. */
async function commitOfStart(tool: ReturnType<typeof lookup>, budget: Budget = {}): Promise<readonly EntryType[]> {
  const { stores, commits } = watchedStores();
  const model = scriptedModel([calling("lookup"), "done"]);
  const runtime = await createRuntime({
    agents: [defineAgent({ name: "worker", model, tools: [tool], budget })],
    stores,
  });
  const agent = await runtime.agent("worker");
  await agent.start();
  expect((await agent.executeTurn("go").result).text).toBe("done");
  await runtime.shutdown();
  return commits.find((types) => types.includes("tool.started")) ?? [];
}

describe("a call that may run ahead of its commit", () => {
  it("is stored with its answer, its result and the next intent", async () => {
    expect(await commitOfStart(lookup(() => "found"))).toEqual(
      expect.arrayContaining(["model.responded", "tool.started", "tool.settled", "model.requested"]),
    );
  });

  it("waits for its commit where its effect reaches outside, or a limit on calls binds", async () => {
    const settled: EntryType = "tool.settled";
    expect(await commitOfStart(lookup(() => "found", "keyed"))).not.toContain(settled);
    expect(
      await commitOfStart(
        lookup(() => "found"),
        { maxToolCalls: 5 },
      ),
    ).not.toContain(settled);
    expect(
      await commitOfStart(
        lookup(() => "found"),
        { maxTreeToolCalls: 5 },
      ),
    ).not.toContain(settled);
  });

  it("shows its progress between its beginning and its end", async () => {
    const model = scriptedModel([calling("lookup"), "done"]);
    const tool = lookup((run) => {
      run.progress("half");
      return "found";
    });
    const runtime = await createRuntime({ agents: [defineAgent({ name: "worker", model, tools: [tool] })] });
    const agent = await runtime.agent("worker");
    await agent.start();
    const seen: string[] = [];
    for await (const { type } of agent.executeTurn("go")) if (type.startsWith("tool.")) seen.push(type);
    await runtime.shutdown();
    expect(seen).toEqual(["tool.started", "tool.progress", "tool.completed"]);
  });
});

describeRuntimes("a call that ran ahead of a commit that refused it", (stage) => {
  it("keeps its result, if it had ended", async () => {
    const model = scriptedModel([calling("lookup"), "done"]);
    let pausing: Promise<unknown> | undefined;
    const tool = lookup(() => {
      pausing = agent.pause();
      return "found";
    });
    const runtime = await stage().open({ agents: [defineAgent({ name: "worker", model, tools: [tool] })] });
    const agent = await runtime.agent("worker");
    await agent.start();
    const turn = agent.executeTurn("go");
    await turn.id;
    await expect.poll(() => agent.state.status, { timeout: 30_000 }).toBe("paused");
    await pausing;
    await agent.resume();
    expect((await turn.result).text).toBe("done");
    expect(await toolTextsOf(agent)).toEqual(["found"]);
  });

  it("is cut, and runs again after the pause, if it had not", async () => {
    const model = scriptedModel([calling("lookup"), "done"]);
    const gate = createGate<string>();
    const tool = lookup(async (run) => {
      if (gate.count === 0) void agent.pause();
      return await gate.pass(run.signal);
    });
    const runtime = await stage().open({ agents: [defineAgent({ name: "worker", model, tools: [tool] })] });
    const agent = await runtime.agent("worker");
    await agent.start();
    const turn = agent.executeTurn("go");
    await gate.reached();
    await expect.poll(() => agent.state.status, { timeout: 30_000 }).toMatch(/paus|busy/);
    gate.open("found");
    await agent.resume();
    expect((await turn.result).text).toBe("done");
    expect(await toolTextsOf(agent)).toEqual(["found"]);
  });

  it("ends with its turn, if that was aborted meanwhile", async () => {
    const model = scriptedModel([calling("lookup"), "done"]);
    const tool = lookup(async () => {
      void agent.abort();
      return "found";
    });
    const runtime = await stage().open({ agents: [defineAgent({ name: "worker", model, tools: [tool] })] });
    const agent = await runtime.agent("worker");
    await agent.start();
    const { status } = await agent.executeTurn("go").result;
    expect(status).toBe("stopped");
    const entries = await entriesOf(stage().look(), agent.agentId);
    expect(entries.filter(({ type }) => type === "tool.settled")).toHaveLength(1);
    expect((await agent.executeTurn("again").result).status).toBe("completed");
  });
});
