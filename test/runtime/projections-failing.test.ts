import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { defineAgent, TurnInterruptedError } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { elapse, loopTurns } from "../support/journal-probes.ts";
import { type BeforeWrite, OwnMessages, OwnStates, ownStores } from "../support/own-stores.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { createGate } from "../support/turn-probes.ts";

const agents = [defineAgent({ name: "desk", model: scriptedModel(({ messages }) => `I see ${messages.length}`) })];

/** A store that cannot be reached while `isDown` is set. */
function outage() {
  const state = { isDown: true, tries: 0 };
  const before: BeforeWrite = () => {
    state.tries += 1;
    if (state.isDown) throw new Error("no route to the store");
  };
  return { state, before };
}

describeRuntimes("a custom store that fails", (stage) => {
  const open = async (projections: Parameters<ReturnType<typeof stage>["open"]>[0]["projections"], agentId = "p") => {
    const runtime = await stage().open({ agents, projections });
    const agent = await runtime.agent("desk", { agentId });
    await agent.start();
    return { runtime, agent };
  };
  const warnings: string[] = [];
  beforeEach(() => {
    vi.spyOn(process, "emitWarning").mockImplementation((warning) => void warnings.push(String(warning)));
  });
  afterEach(() => {
    warnings.length = 0;
    vi.restoreAllMocks();
  });

  it("breaks no turn, delays no other store, is reported once, and gets everything once it is back", async () => {
    const { state, before } = outage();
    const messages = new OwnMessages(before);
    const states = new OwnStates();
    const { runtime, agent } = await open({ messages, state: states });
    expect(await agent.executeTurn("one").result).toMatchObject({ status: "completed", text: "I see 1" });
    expect(await agent.executeTurn("two").result).toMatchObject({ status: "completed", text: "I see 3" });
    const projected = runtime.projected("p");
    await loopTurns(10);
    expect((await states.load("p"))?.turnCount).toBe(2);
    // Each retry waits longer than the one before, and no retry warns again.
    for (let round = 0; round < 40; round += 1) {
      stage().clock.advance(1_000);
      await loopTurns(3);
    }
    expect(state.tries).toBeGreaterThan(4);
    expect(state.tries).toBeLessThan(40);
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toMatch(/^the message store could not be written.*no route to the store/);
    expect(messages.of("p")).toEqual([]);

    state.isDown = false;
    await elapse(stage().clock, projected);
    expect(messages.of("p")).toEqual(await agent.getMessages());
    expect(messages.appended).toHaveLength(4);
  });

  it("is reported again after a recovery, and once for all trees", async () => {
    const { state, before } = outage();
    const messages = new OwnMessages(before);
    const { runtime, agent } = await open({ messages });
    const other = await runtime.agent("desk", { agentId: "q" });
    await other.start();
    for (const one of [agent, other]) await one.executeTurn("one").result;
    await loopTurns(10);
    expect(warnings).toHaveLength(1);
    state.isDown = false;
    await elapse(stage().clock, Promise.all([runtime.projected("p"), runtime.projected("q")]));
    state.isDown = true;
    await agent.executeTurn("two").result;
    await loopTurns(10);
    expect(warnings).toHaveLength(2);
    state.isDown = false;
    await elapse(stage().clock, runtime.projected("p"));
    expect(messages.of("p")).toHaveLength(4);
  });

  it("is abandoned by shutdown() after one more try, and caught up at the next start", async () => {
    const { state, before } = outage();
    const messages = new OwnMessages(before);
    const { runtime, agent } = await open({ messages });
    await agent.executeTurn("one").result;
    await loopTurns(10);
    const projected = runtime.projected("p");
    const [refused] = await Promise.allSettled([projected, runtime.shutdown()]);
    expect(refused).toMatchObject({ status: "rejected", reason: expect.any(TurnInterruptedError) });
    expect(messages.of("p")).toEqual([]);
    state.isDown = false;
    const next = await open({ messages });
    await next.runtime.projected("p");
    expect(messages.of("p")).toEqual(await next.agent.getMessages());
  });
});

describeRuntimes("a slow custom store", (stage) => {
  it("delays no turn; projected() waits for everything committed before the call", async () => {
    const gate = createGate();
    const own = ownStores((operation) => (operation === "append" ? gate.pass() : undefined));
    const runtime = await stage().open({ agents, projections: own });
    const agent = await runtime.agent("desk", { agentId: "p" });
    await agent.start();
    await agent.executeTurn("one").result;
    await agent.executeTurn("two").result;
    let isProjected = false;
    const projected = runtime.projected("p").then(() => {
      isProjected = true;
    });
    await loopTurns(20);
    expect(isProjected).toBe(false);
    gate.open();
    await projected;
    expect(own.messages.of("p")).toEqual(await agent.getMessages());
  });

  it("shutdown() waits for it", async () => {
    const gate = createGate();
    const own = ownStores((operation) => (operation === "append" ? gate.pass() : undefined));
    const runtime = await stage().open({ agents, projections: own });
    const agent = await runtime.agent("desk", { agentId: "p" });
    await agent.start();
    await agent.executeTurn("one").result;
    const messages = await agent.getMessages();
    await gate.reached();
    const closed = runtime.shutdown();
    await loopTurns(20);
    gate.open();
    await closed;
    expect(own.messages.of("p")).toEqual(messages);
  });

  it("shutdown() waits no longer than five seconds", async () => {
    const never = Promise.withResolvers<never>().promise;
    const own = ownStores((operation) => (operation === "append" ? never : undefined));
    const runtime = await stage().open({ agents, projections: own });
    const agent = await runtime.agent("desk", { agentId: "p" });
    await agent.start();
    await agent.executeTurn("one").result;
    const before = stage().clock.now();
    await elapse(stage().clock, runtime.shutdown());
    expect(stage().clock.now() - before).toBeLessThan(5_500);
    expect((await own.state.load("p"))?.turnCount).toBe(1);
  });
});
