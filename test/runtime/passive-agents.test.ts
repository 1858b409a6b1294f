import { queryObjects } from "node:v8";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { z } from "zod";
import {
  type Agent,
  AlreadyOwnedError,
  createRuntime,
  defineAgent,
  defineTool,
  InvalidInputError,
  memoryStores,
  type Runtime,
  type Stores,
  StoreUnavailableError,
  subagent,
} from "../../src/index.ts";
import { Activation } from "../../src/runtime/agent/activation.ts";
import { createFakeClock, type FakeClock, type ModelScript, scriptedModel } from "../../src/testing/index.ts";
import { openTill, payment, requestOf, startAgent } from "../support/deciding.ts";
import { amount } from "../support/full.ts";
import { entriesOf, loopTurns, toolTextsOf } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling } from "../support/turn-probes.ts";

const liveIn = async (runtime: Runtime): Promise<number> => (await runtime.metrics()).liveAgents;

/** Advances the clock until `live` agents are live. */
async function idleUntil(runtime: Runtime, clock: FakeClock, live = 0): Promise<void> {
  for (const end = performance.now() + 30_000; performance.now() < end; ) {
    if ((await liveIn(runtime)) === live) return;
    clock.advance(500);
    await loopTurns(5);
  }
  throw new Error(`${await liveIn(runtime)} live agents, expected ${live}`);
}

const echo: ModelScript = ({ messages }) => `heard ${messages.filter(({ role }) => role === "user").length}`;
const clerk = (script: ModelScript = echo) => defineAgent({ name: "clerk", model: scriptedModel(script) });

const till = () => openTill();
const payOnce: ModelScript = ({ messages }) => (messages.at(-1)?.role === "user" ? calling(payment(5)) : "the end");
const payer = (opened = till()) => defineAgent({ name: "clerk", model: scriptedModel(payOnce), tools: [opened.tool] });

const epochsOf = async (stores: Stores, agentId: string): Promise<number[]> => [
  ...new Set((await entriesOf(stores, agentId)).map(({ epoch }) => epoch)),
];

describeRuntimes("a passivated agent whose lease stayed in the process", (stage) => {
  /** The restored variants activate the agent again after each commit. */
  const isRestored = (): boolean => stage().variant.includes("restored");

  it("continues with its next turn, and its handle does not change", async () => {
    const runtime = await stage().open({ agents: [clerk()] });
    const agent = await startAgent(runtime, "clerk", "c");
    await agent.executeTurn("one").result;
    const before = agent.state;
    const stored = await entriesOf(stage().look(), "c");
    await idleUntil(runtime, stage().clock);
    expect(agent.state).toEqual(before);
    expect(await entriesOf(stage().look(), "c")).toEqual(stored);
    expect(await agent.executeTurn("two").result).toMatchObject({ status: "completed", text: "heard 2" });
    expect(agent.state).toMatchObject({ status: "ready", turnCount: 2, openTurnId: null });
  });

  it("keeps its turn open while it waits for a decision, which activates it", async () => {
    const opened = till();
    const runtime = await stage().open({ agents: [payer(opened)] });
    const agent = await startAgent(runtime, "clerk", "c");
    const turn = agent.executeTurn("pay");
    const { requestId } = await requestOf(turn);
    await idleUntil(runtime, stage().clock);
    expect(agent.state).toMatchObject({ status: "busy", openTurnId: "c#1" });
    expect(await agent.contextPercent()).not.toBeUndefined();
    expect(await runtime.requests()).toHaveLength(1);
    await runtime.decide(requestId, { verdict: "approved" });
    expect(await turn.result).toMatchObject({ status: "completed", text: "the end" });
    expect(opened.paid).toHaveLength(1);
  });

  it("can be paused, resumed, aborted and shut down like a live one", async () => {
    const runtime = await stage().open({ agents: [payer()] });
    const agent = await startAgent(runtime, "clerk", "c");
    const turn = agent.executeTurn("pay");
    await requestOf(turn);
    await idleUntil(runtime, stage().clock);
    await agent.pause();
    expect(agent.state.status).toBe("paused");
    await idleUntil(runtime, stage().clock);
    expect(agent.state.status).toBe("paused");
    await agent.resume();
    expect(agent.state.status).toBe("busy");
    await idleUntil(runtime, stage().clock);
    await agent.abort("enough");
    expect(await turn.result).toMatchObject({ status: "stopped", stopReason: "user_requested" });
    await idleUntil(runtime, stage().clock);
    await agent.shutdown();
    expect(agent.state.status).toBe("shutdown");
    await agent.start();
    expect(agent.state.status).toBe("ready");
  });

  it("is stopped at its turn's deadline by the timer set before", async () => {
    const runtime = await stage().open({ agents: [payer()] });
    const agent = await startAgent(runtime, "clerk", "c");
    const turn = agent.executeTurn("pay", { budget: { deadline: stage().clock.now() + 600_000 } });
    await requestOf(turn);
    await idleUntil(runtime, stage().clock);
    stage().clock.advance(600_000);
    expect(await turn.result).toMatchObject({ status: "stopped", stopReason: "time_limit" });
  });

  it("receives the ends of its children, which may be passive too", async () => {
    const opened = till();
    const aide = defineAgent({ name: "aide", model: scriptedModel(payOnce), tools: [opened.tool] });
    const lead = defineAgent({
      name: "lead",
      model: scriptedModel(({ messages }) =>
        messages.at(-1)?.role === "tool" ? "all done" : calling({ name: "aide", arguments: { input: "go" } }),
      ),
      tools: [subagent(aide)],
    });
    const runtime = await stage().open({ agents: [lead] });
    const agent = await startAgent(runtime, "lead", "l");
    const turn = agent.executeTurn("go");
    const { requestId } = await requestOf(turn);
    await idleUntil(runtime, stage().clock);
    await runtime.decide(requestId, { verdict: "approved" });
    expect(await turn.result).toMatchObject({ status: "completed", text: "all done" });
    expect(await toolTextsOf(agent)).toEqual(["the end"]);
  });

  it("runs queued inputs in order, those from before it was passivated and those from after", async () => {
    const runtime = await stage().open({ agents: [payer()] });
    const agent = await startAgent(runtime, "clerk", "c");
    const turns = [agent.executeTurn("one")];
    const { requestId } = await requestOf(turns[0] as (typeof turns)[0]);
    turns.push(agent.executeTurn("two", { ifBusy: "queue" }));
    await turns[1]?.id;
    await idleUntil(runtime, stage().clock);
    turns.push(agent.executeTurn("three", { ifBusy: "queue" }));
    await turns[2]?.id;
    await idleUntil(runtime, stage().clock);
    await runtime.decide(requestId, { verdict: "approved" });
    expect(await turns[0]?.result).toMatchObject({ status: "completed" });
    for (const turn of turns.slice(1)) {
      const request = await requestOf(turn);
      await runtime.decide(request.requestId, { verdict: "rejected" });
      expect(await turn.result).toMatchObject({ status: "completed" });
    }
    expect((await agent.getMessages()).filter(({ role }) => role === "user").map(({ content }) => content)).toEqual([
      "one",
      "two",
      "three",
    ]);
  });

  it("is activated once for two inputs at the same moment", async () => {
    const runtime = await stage().open({ agents: [clerk()] });
    const agent = await startAgent(runtime, "clerk", "c");
    await agent.executeTurn("one").result;
    await idleUntil(runtime, stage().clock);
    const other = await runtime.find("c");
    const turns = [agent, other].map((one) => one.executeTurn("more", { ifBusy: "queue" }));
    const texts = await Promise.all(turns.map(async (turn) => (await turn.result).text));
    expect(texts.toSorted()).toEqual(["heard 2", "heard 3"]);
    // One activation before, and one for both.
    const epochs = await epochsOf(stage().look(), "c");
    expect(epochs.length === 2 || isRestored()).toBe(true);
  });

  it("cannot be taken by another process before this one is shut down, and then at once", async () => {
    const first = await stage().open({ agents: [payer()] });
    const turn = (await startAgent(first, "clerk", "c")).executeTurn("pay");
    const { requestId } = await requestOf(turn);
    await idleUntil(first, stage().clock);
    const second = await stage().open({ agents: [payer()] });
    const agent = await second.find("c");
    await expect(agent.start()).rejects.toThrow(AlreadyOwnedError);
    const [interrupted] = await Promise.allSettled([turn.result, first.shutdown()]);
    expect(interrupted.status).toBe("rejected");
    await agent.start();
    await second.decide(requestId, { verdict: "approved" });
    expect(await agent.turn("c#1").result).toMatchObject({ status: "completed", text: "the end" });
  });

  it("is activated for a post of another process", async () => {
    const first = await stage().open({ agents: [payer()] });
    const turn = (await startAgent(first, "clerk", "c")).executeTurn("pay");
    const { requestId } = await requestOf(turn);
    await idleUntil(first, stage().clock);
    const second = await stage().open({ agents: [payer()] });
    await second.decide(requestId, { verdict: "approved" });
    const ended = turn.result;
    for (let isOver = false; !isOver; await loopTurns(5)) {
      stage().clock.advance(1_000);
      isOver = await Promise.race([ended.then(() => true), loopTurns(5).then(() => false)]);
    }
    expect(await ended).toMatchObject({ status: "completed", text: "the end" });
  });
});

async function openIdle(idle: { keptMs?: number; agents?: number }, stores = memoryStores()) {
  const clock = createFakeClock();
  const runtime = await createRuntime({ agents: [clerk()], clock, stores, idle });
  onTestFinished(() => runtime.shutdown());
  const start = (id: string): Promise<Agent> => startAgent(runtime, "clerk", id);
  return { runtime, clock, start };
}

describe("the time an idle agent stays live", () => {
  it("is idle.keptMs", async () => {
    const { runtime, clock, start } = await openIdle({ keptMs: 60_000 });
    await start("a");
    for (let second = 0; second < 59; second += 1) {
      clock.advance(1_000);
      await loopTurns(2);
    }
    expect(await liveIn(runtime)).toBe(1);
    await idleUntil(runtime, clock);
  });

  it("is shorter while more than idle.agents are live; the longest idle go first", async () => {
    const { runtime, clock, start } = await openIdle({ keptMs: 3_600_000, agents: 2 });
    const agents = [await start("a"), await start("b"), await start("c"), await start("d")];
    await idleUntil(runtime, clock, 2);
    await agents[0]?.executeTurn("again").result;
    expect(await liveIn(runtime)).toBe(3);
    await idleUntil(runtime, clock, 2);
    await agents[0]?.executeTurn("again").result;
    expect(await liveIn(runtime)).toBe(2);
  });

  it("does not elapse while one of its calls is running", async () => {
    const { promise: answer, resolve } = Promise.withResolvers<string>();
    const clock = createFakeClock();
    const look = defineTool({
      name: "look",
      description: "Looks.",
      parameters: z.object({}),
      effect: "none",
      execute: () => answer,
    });
    const model = scriptedModel([calling("look"), "seen"]);
    const agents = [defineAgent({ name: "clerk", model, tools: [look] })];
    const runtime = await createRuntime({ agents, clock, idle: { keptMs: 0, agents: 0 } });
    onTestFinished(() => runtime.shutdown());
    const agent = await startAgent(runtime, "clerk", "c");
    const turn = agent.executeTurn("look");
    for (let time = 0; time < 20; time += 1) {
      clock.advance(1_000);
      await loopTurns(3);
    }
    expect(await liveIn(runtime)).toBe(1);
    resolve("a cat");
    expect(await turn.result).toMatchObject({ text: "seen" });
    await idleUntil(runtime, clock);
  });

  it.each([{ keptMs: -1 }, { keptMs: 1.5 }, { agents: -1 }, { ms: 5 }])("refuses %j", async (idle) => {
    await expect(createRuntime({ agents: [clerk()], idle: idle as object })).rejects.toThrow(InvalidInputError);
  });
});

it("an agent that could not be activated because its stores did not answer stays passive and is activated later", async () => {
  const stores = memoryStores();
  let isAway = false;
  const acquire: Stores["acquire"] = async (...given) => {
    if (isAway) throw new StoreUnavailableError("away");
    return await stores.acquire(...given);
  };
  const { runtime, clock, start } = await openIdle({}, { ...stores, acquire });
  const agent = await start("a");
  await idleUntil(runtime, clock);
  isAway = true;
  await expect(agent.start()).rejects.toThrow("away");
  expect(agent.state.status).toBe("ready");
  isAway = false;
  expect(await agent.executeTurn("hello").result).toMatchObject({ text: "heard 1" });
});

it("a heartbeat checks the inboxes of all agents of the process with one read", async () => {
  const stores = memoryStores();
  const clock = createFakeClock();
  const inbox = vi.fn<Stores["inbox"]>((key) => stores.inbox(key));
  const posted = vi.fn<Stores["posted"]>((keys) => stores.posted(keys));
  const options = { agents: [clerk()], clock, leaseMs: 3_000, idle: { keptMs: 0 } };
  const runtime = await createRuntime({ ...options, stores: { ...stores, inbox, posted } });
  onTestFinished(() => runtime.shutdown());
  const agents = await Promise.all(["a", "b", "c", "d"].map((id) => startAgent(runtime, "clerk", id)));
  for (const agent of agents.slice(2)) await agent.executeTurn("one").result;
  await idleUntil(runtime, clock);
  inbox.mockClear();
  posted.mockClear();
  clock.advance(1_000);
  await loopTurns(5);
  expect(posted.mock.calls.map(([keys]) => keys.map(({ agentId }) => agentId).toSorted())).toEqual([
    ["a", "b", "c", "d"],
  ]);
  expect(inbox).not.toHaveBeenCalled();
});

it("repeated turns and passivations leak no activation", async () => {
  const { runtime, clock, start } = await openIdle({ keptMs: 0 });
  // The function is still experimental, and Node warns once per process.
  const said = vi.spyOn(process, "emitWarning").mockReturnValue();
  const before = queryObjects(Activation, { format: "count" });
  said.mockRestore();
  const agents = await Promise.all(["a", "b", "c"].map(start));
  for (let turn = 0; turn < amount(10_000, 300); turn += 1) {
    await agents[turn % 3]?.executeTurn("again").result;
    if (turn % 10 === 0) await idleUntil(runtime, clock);
    if (turn % 100 === 0) for (const agent of agents) await agent.resetConversation();
  }
  await idleUntil(runtime, clock);
  // Leftovers of earlier tests may have been collected by now.
  expect(queryObjects(Activation, { format: "count" })).toBeLessThanOrEqual(before);
  expect(agents.map(({ state }) => state.status)).toEqual(["ready", "ready", "ready"]);
});
