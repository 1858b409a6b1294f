import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  type AgentRequest,
  askUser,
  createRuntime,
  type Decide,
  defineAgent,
  defineTool,
  memoryStores,
  run,
  type Stores,
  subagent,
  textOf,
  TurnFailedError,
  TurnWaitingError,
} from "../../src/index.ts";
import { sqliteStores } from "../../src/stores/sqlite.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { z } from "zod";
import { calling, createGate } from "../support/turn-probes.ts";

const counts = scriptedModel(({ messages }) => `I see ${messages.filter(({ role }) => role === "user").length}.`);
const counter = defineAgent({ name: "counter", model: counts });
const broken = defineAgent({ name: "broken", model: scriptedModel({ error: new Error("out of order") }) });
const asker = defineAgent({
  name: "asker",
  tools: [askUser()],
  model: scriptedModel(({ messages }) =>
    messages.at(-1)?.role === "tool" ? "Thanks." : calling({ name: "ask_user", arguments: { question: "Which one?" } }),
  ),
});

/** Stores that count their close() calls. */
function watched(stores: Stores): { readonly stores: Stores; readonly closed: () => number } {
  let closed = 0;
  const close = async (): Promise<void> => {
    closed += 1;
    await stores.close();
  };
  return { stores: { ...stores, close }, closed: () => closed };
}

function throwing(): never {
  throw new Error("out of paper");
}

function asking(question: string) {
  return { name: "ask_user", arguments: { question } };
}

/** A tool that waits until it is aborted. */
function holding(): { readonly agent: ReturnType<typeof defineAgent>; readonly reached: () => Promise<void> } {
  const gate = createGate();
  const hold = defineTool({
    name: "hold",
    description: "Holds on.",
    parameters: z.object({}),
    execute: (_, { signal }) => gate.pass(signal),
  });
  return {
    agent: defineAgent({ name: "holder", model: scriptedModel([calling("hold")]), tools: [hold] }),
    reached: () => gate.reached(),
  };
}

describe("run()", () => {
  it("returns the result of one turn and closes its stores", async () => {
    const { stores, closed } = watched(memoryStores());
    const { text, status, agentId } = await run(counter, "one", { stores, agentId: "desk-7" });
    expect({ text, status, agentId }).toEqual({ text: "I see 1.", status: "completed", agentId: "desk-7" });
    expect(closed()).toBe(1);
  });

  it("needs no options and stores nothing", async () => {
    expect((await run(counter, "one")).text).toBe("I see 1.");
    expect((await run(counter, "two")).text).toBe("I see 1.");
  });

  it("passes every event to onEvent, in order and including those of subagents", async () => {
    const lead = defineAgent({
      name: "lead",
      model: scriptedModel([calling({ name: "counter", arguments: { input: "go" } }), "Done."]),
      tools: [subagent(counter)],
    });
    const told: string[] = [];
    await run(lead, "go", { onEvent: ({ agentName, type }) => void told.push(`${agentName} ${type}`) });
    expect(told.filter((line) => /(turn.started|step.started)$/.test(line))).toEqual([
      "lead turn.started",
      "lead step.started",
      "counter turn.started",
      "counter step.started",
      "lead step.started",
    ]);
    expect(told).toContain("counter turn.completed");
    expect(told.at(-1)).toBe("lead turn.completed");
  });

  it("rejects with an error thrown by onEvent, and still closes its stores", async () => {
    const { stores, closed } = watched(memoryStores());
    await expect(run(counter, "one", { stores, onEvent: throwing })).rejects.toThrow("out of paper");
    expect(closed()).toBe(1);
  });

  it("returns a turn that a limit stopped as a result", async () => {
    const stopped = await run(counter, "one", { budget: { maxSteps: 0 } });
    expect(stopped).toMatchObject({ status: "stopped", stopReason: "steps_limit" });
  });

  it("rejects if the turn fails, with the result on the error, and closes its stores", async () => {
    const { stores, closed } = watched(memoryStores());
    const failed: unknown = await run(broken, "one", { stores, agentId: "a" }).catch((error: unknown) => error);
    expect(failed).toBeInstanceOf(TurnFailedError);
    expect(failed).toMatchObject({
      name: "TurnFailedError",
      code: "turn_failed",
      family: "terminal",
      retryable: false,
      message: 'the turn of agent "broken" failed: out of order',
      details: { definition: "broken", agentId: "a", turnId: "a#1" },
      result: { status: "failed", error: { message: "out of order" }, agentId: "a", turnId: "a#1" },
      cause: { message: "out of order" },
    });
    expect(closed()).toBe(1);
  });

  it("returns a failed turn as a result with `throwOnFailure: false`", async () => {
    const failed = await run(broken, "one", { throwOnFailure: false });
    expect(failed).toMatchObject({ status: "failed", error: { message: "out of order" } });
    await expect(run(broken, "one", { throwOnFailure: true })).rejects.toThrow(TurnFailedError);
    const wrong = { throwOnFailure: "no" as unknown as boolean };
    await expect(run(counter, "one", wrong)).rejects.toThrow('throwOnFailure is the text "no"');
  });

  it("ends as `stopped` on its signal, before the first step and in the middle of a call", async () => {
    const early = await run(counter, "one", { signal: AbortSignal.abort("not now") });
    expect(early).toMatchObject({ status: "stopped", steps: 0 });
    const { agent, reached } = holding();
    const { stores, closed } = watched(memoryStores());
    const aborting = new AbortController();
    const under = run(agent, "go", { signal: aborting.signal, stores });
    await reached();
    aborting.abort("enough");
    expect(await under).toMatchObject({ status: "stopped", steps: 1 });
    expect(closed()).toBe(1);
  });

  it("passes credentials to tools", async () => {
    const whoami = defineTool({
      name: "whoami",
      description: "Says who the turn is for.",
      parameters: z.object({}),
      auth: "required",
      execute: (_, { auth }) => `${auth?.actorId} ${JSON.stringify(auth?.credentials)}`,
    });
    const agent = defineAgent({
      name: "clerk",
      tools: [whoami],
      model: scriptedModel(({ messages }) => {
        const last = messages.at(-1);
        return last?.role === "tool" ? textOf(last.content) : calling("whoami");
      }),
    });
    const auth = { actorId: "ada", credentials: { token: "t-1" } };
    expect((await run(agent, "go", { auth })).text).toMatch(/^ada /);
  });
});

describe("a run that waits for a person", () => {
  it("rejects with the open requests and an error that suggests what to do", async () => {
    const { stores, closed } = watched(memoryStores());
    const waiting: unknown = await run(asker, "go", { stores, agentId: "a" }).catch((error: unknown) => error);
    expect(waiting).toBeInstanceOf(TurnWaitingError);
    expect(waiting).toMatchObject({
      code: "turn_waiting",
      agentId: "a",
      turnId: "a#1",
      requests: [{ requestId: "a#1:1:0:1", kind: "question", prompt: "Which one?" }],
      message: expect.stringMatching(/question of "ask_user" \(a#1:1:0:1\).*decide.*null as input/),
    });
    expect(closed()).toBe(1);
    await expect(run(asker, "go")).rejects.toThrow(/or pass it stores, so that the turn stays open/);
  });

  it("calls `decide` once for each request, and continues with its decision", async () => {
    const asked: AgentRequest[] = [];
    const { text } = await run(asker, "go", {
      decide: async (request) => {
        asked.push(request);
        return { verdict: "answered", result: "the red one", by: "ada" };
      },
    });
    expect(text).toBe("Thanks.");
    expect(asked.map(({ prompt }) => prompt)).toEqual(["Which one?"]);
  });

  it("decides some of several requests, and rejects with the remaining ones", async () => {
    const agent = defineAgent({
      name: "twice",
      tools: [askUser()],
      model: scriptedModel([calling(asking("one?"), asking("two?"))]),
    });
    const asked: string[] = [];
    const decide = ({ prompt }: AgentRequest) => {
      asked.push(prompt);
      return prompt === "one?" ? ({ verdict: "answered", result: "1" } as const) : undefined;
    };
    await expect(run(agent, "go", { decide })).rejects.toMatchObject({ requests: [{ prompt: "two?" }] });
    expect(asked).toEqual(["one?", "two?"]);
  });

  it("rejects with an error thrown by `decide`, and for a decision of the wrong kind", async () => {
    await expect(run(asker, "go", { decide: throwing })).rejects.toThrow("out of paper");
    await expect(run(asker, "go", { decide: async () => ({ verdict: "approved" }) })).rejects.toMatchObject({
      code: "invalid_input",
    });
  });

  it.each([5, "approved", null, { ended: true }])(
    "rejects with InvalidInputError if `decide` returns %j",
    async (given) => {
      const decide = () => given as unknown as Decide;
      await expect(run(asker, "go", { decide })).rejects.toMatchObject({ name: "InvalidInputError" });
    },
  );

  it("does not wait for an answer after its signal", async () => {
    const asked = createGate();
    const aborting = new AbortController();
    const decide = async (): Promise<undefined> => {
      await asked.pass();
      return undefined;
    };
    const under = run(asker, "go", { decide, signal: aborting.signal });
    await asked.reached();
    aborting.abort("enough");
    expect(await under).toMatchObject({ status: "stopped" });
  });

  it("rejects with an error that the agent is paused", async () => {
    const stores = memoryStores();
    const runtime = await createRuntime({ agents: [counter], stores });
    const agent = await runtime.agent("counter", { agentId: "a" });
    await agent.start();
    await agent.pause();
    await runtime.shutdown();
    await expect(run(counter, "one", { stores, agentId: "a" })).rejects.toThrow(/agent "a" is paused; call resume\(\)/);
  });
});

describe.each(["memory", "sqlite"])("run() with stores: %s", (kind) => {
  let folder = "";
  let open: () => Stores;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "troupe-run-"));
    const memory = memoryStores();
    open = () => (kind === "memory" ? memory : sqliteStores(join(folder, "a.db")));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  it("continues the conversation of the same agent", async () => {
    await run(counter, "one", { stores: open(), agentId: "a" });
    expect(await run(counter, "two", { stores: open(), agentId: "a" })).toMatchObject({
      text: "I see 2.",
      turnId: "a#2",
    });
  });

  it("continues the open turn for the input null, once its request is decided", async () => {
    const waiting = run(asker, "go", { stores: open(), agentId: "a" });
    await expect(waiting).rejects.toThrow(TurnWaitingError);
    const busy = run(asker, "more", { stores: open(), agentId: "a" });
    await expect(busy).rejects.toMatchObject({
      code: "agent_busy",
      message: expect.stringContaining("null as input"),
    });
    const page = await createRuntime({ agents: [], stores: open() });
    for (const { requestId } of await page.requests())
      await page.decide(requestId, { verdict: "answered", result: "it" });
    await page.shutdown();
    const events: string[] = [];
    const onEvent = ({ type }: { readonly type: string }): void => void events.push(type);
    const { text, turnId } = await run(asker, null, { stores: open(), agentId: "a", onEvent });
    expect({ text, turnId }).toEqual({ text: "Thanks.", turnId: "a#1" });
    expect(events.at(-1)).toBe("turn.completed");
  });

  it("a signal ends a turn that is continued", async () => {
    await expect(run(asker, "go", { stores: open(), agentId: "a" })).rejects.toThrow(TurnWaitingError);
    const signal = AbortSignal.abort("enough");
    expect(await run(asker, null, { stores: open(), agentId: "a", signal })).toMatchObject({
      status: "stopped",
      turnId: "a#1",
    });
  });
});

describe("run() refuses", () => {
  it.each([
    [{ store: memoryStores() }, 'run() has no option "store": did you mean stores?'],
    [{ agentID: "a" }, "did you mean agentId?"],
    [{ maxSteps: 3 }, "did you mean budget: { maxSteps }?"],
    [{ signal: new AbortController() }, "expected an AbortSignal"],
    [{ onEvent: "print" }, "run(): onEvent is the text"],
    [{ decide: true }, "run(): decide is true"],
    [{ agents: counter }, "run(): agents is an object"],
    [null, "run() expects its options as an object"],
  ])("the options %#", async (options, message) => {
    await expect(run(counter, "one", options as object)).rejects.toMatchObject({
      code: "invalid_input",
      message: expect.stringContaining(message),
    });
  });

  it("values that are not definitions, and values that are not inputs", async () => {
    const nobody: unknown = { name: "counter" };
    await expect(run(nobody as typeof counter, "one")).rejects.toThrow("made by defineAgent()");
    const nothing: unknown = 7;
    await expect(run(counter, nothing as string)).rejects.toMatchObject({ code: "invalid_input" });
  });
});
