import { expect, it } from "vitest";
import { z } from "zod";
import { defineAgent, defineTool, ModelError, TurnInterruptedError } from "../../src/index.ts";
import { type ModelScript, scriptedModel } from "../../src/testing/index.ts";
import { elapse, entriesOfType, loopTurns, orderFault } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling, createGate, eventsOfTurn, nextEvent } from "../support/turn-probes.ts";

const worker = (script: ModelScript) => defineAgent({ name: "worker", model: scriptedModel(script) });
const counting: ModelScript = ({ messages }) => `I see ${messages.length}`;

describeRuntimes("a restart", (stage) => {
  it("L6: after two turns a new process reads turnCount 2 and runs turn 3 with the whole history", async () => {
    const first = await stage().open({ agents: [worker(counting)] });
    const before = await first.agent("worker", { agentId: "r", metadata: { room: "blue" } });
    await before.start();
    await before.executeTurn("one").result;
    await before.executeTurn("two").result;
    await first.shutdown();

    const second = await stage().open({ agents: [worker(counting)] });
    const agent = await second.agent("worker", { agentId: "r" });
    expect(agent.state).toMatchObject({ turnCount: 2, metadata: { room: "blue" } });
    await agent.start();
    expect(agent.state).toMatchObject({ status: "ready", turnCount: 2, openTurnId: null });
    const result = await agent.executeTurn("three").result;
    expect(result).toMatchObject({ turnId: "r#3", text: "I see 5", status: "completed" });
    expect(agent.state.turnCount).toBe(3);
    expect((await agent.getMessages()).map(({ content }) => content)).toEqual([
      "one",
      "I see 1",
      "two",
      "I see 3",
      "three",
      "I see 5",
    ]);
  });

  it("L4: start() continues a turn that shutdown() of the agent interrupted, and its handle gets the result", async () => {
    const gate = createGate<string>();
    const model = scriptedModel((_request, { index, signal }) => (index === 0 ? gate.pass(signal) : "carried on"));
    const runtime = await stage().open({ agents: [defineAgent({ name: "worker", model })] });
    const agent = await runtime.agent("worker", { agentId: "r" });
    await agent.start();
    const turn = agent.executeTurn("go");
    await gate.reached();
    await agent.shutdown();
    gate.open("this answer is lost");
    await loopTurns(10);
    expect((await stage().look().readAgent({ tenant: "default", agentId: "r" }))?.openTurnId).toBe("r#1");
    await agent.start();
    expect(await turn.result).toMatchObject({ status: "completed", text: "carried on", steps: 1 });
    expect(agent.state).toMatchObject({ status: "ready", turnCount: 1 });
    expect(model.calls).toHaveLength(2);
  });

  it("L4: start() in a new process continues a turn that the runtime's shutdown interrupted", async () => {
    const gate = createGate<string>();
    const first = await stage().open({ agents: [worker((_request, { signal }) => gate.pass(signal))] });
    const before = await first.agent("worker", { agentId: "r" });
    await before.start();
    const turn = before.executeTurn("go");
    await gate.reached();
    const [interrupted] = await Promise.allSettled([turn.result, first.shutdown()]);
    expect(interrupted).toMatchObject({ status: "rejected", reason: expect.any(TurnInterruptedError) });

    const second = await stage().open({ agents: [worker("carried on")] });
    const agent = await second.find("r");
    expect(agent.state.openTurnId).toBe("r#1");
    await agent.start();
    expect(await agent.turn("r#1").result).toMatchObject({ status: "completed", text: "carried on" });
    const [failed] = await entriesOfType(stage().look(), "r", "model.failed");
    expect(failed?.settlement?.unconfirmed).toBe(true);
  });

  it("a turn paused mid-turn stays paused in the next process, and resume() continues it there", async () => {
    const gate = createGate<string>();
    const look = defineTool({
      name: "look",
      description: "Looks.",
      parameters: z.object({}),
      effect: "none",
      execute: (_args, run) => gate.pass(run.signal),
    });
    const team = (script: ModelScript) => defineAgent({ name: "worker", model: scriptedModel(script), tools: [look] });
    const first = await stage().open({ agents: [team([calling("look")])] });
    const before = await first.agent("worker", { agentId: "r" });
    await before.start();
    before.executeTurn("go");
    await gate.reached();
    const pausing = before.pause();
    gate.open("seen");
    await pausing;
    await first.shutdown();

    const model = scriptedModel("done");
    const second = await stage().open({ agents: [defineAgent({ name: "worker", model, tools: [look] })] });
    const agent = await second.find("r");
    expect(agent.state).toMatchObject({ status: "paused", openTurnId: "r#1" });
    await agent.start();
    await loopTurns(20);
    expect(agent.state.status).toBe("paused");
    expect(model.calls).toHaveLength(0);
    await agent.resume();
    expect(await agent.turn("r#1").result).toMatchObject({ status: "completed", text: "done", toolCalls: 1 });
    expect(gate.count).toBe(1);
    expect(orderFault(await agent.getMessages())).toBeUndefined();
  });

  it("resume() alone, without start(), activates a paused agent", async () => {
    const gate = createGate<string>();
    const first = await stage().open({ agents: [worker((_request, { signal }) => gate.pass(signal))] });
    const before = await first.agent("worker", { agentId: "r" });
    await before.start();
    await before.pause();
    await first.shutdown();
    const second = await stage().open({ agents: [worker("done")] });
    const agent = await second.find("r");
    await agent.resume();
    expect(agent.state.status).toBe("ready");
    expect((await agent.executeTurn("go").result).text).toBe("done");
  });

  it("results and streams of turns from an earlier process can be read", async () => {
    const first = await stage().open({ agents: [worker(counting)] });
    const before = await first.agent("worker", { agentId: "r" });
    await before.start();
    const turn = before.executeTurn("one");
    const events = (await eventsOfTurn(turn)).filter(({ cursor }) => cursor !== null);
    const result = await turn.result;
    await first.shutdown();
    const second = await stage().open({ agents: [worker(counting)] });
    const agent = await second.find("r");
    expect(await agent.turn("r#1").result).toEqual(result);
    expect(await agent.turn("r#1").settled).toEqual(result);
    expect(await eventsOfTurn(agent.turn("r#1"))).toEqual(events);
    expect(agent.state.status).toBe("ready");
  });

  it("shutdown() of the runtime settles or rejects all waits and refuses later calls", async () => {
    const gate = createGate<string>();
    const first = await stage().open({ agents: [worker((_request, { signal }) => gate.pass(signal))] });
    const agent = await first.agent("worker", { agentId: "r" });
    await agent.start();
    const turn = agent.executeTurn("go");
    await gate.reached();
    const waiting = [eventsOfTurn(turn), turn.result, turn.settled];
    const outcomes = await Promise.allSettled([...waiting, first.shutdown()]);
    const interrupted = { status: "rejected", reason: expect.any(TurnInterruptedError) };
    expect(outcomes).toMatchObject([interrupted, interrupted, interrupted, { status: "fulfilled" }]);
    await expect(turn.result).rejects.toThrow(/continues at the next start/);
    await expect(agent.executeTurn("more").result).rejects.toThrow(/was shut down/);
    await expect(agent.start()).rejects.toThrow(/was shut down/);
  });

  it("a turn continues under a changed definition, with a warning in its stream", async () => {
    const gate = createGate<string>();
    const first = await stage().open({ agents: [worker((_request, { signal }) => gate.pass(signal))] });
    const before = await first.agent("worker", { agentId: "r" });
    await before.start();
    before.executeTurn("go");
    await gate.reached();
    await first.shutdown();
    const changed = defineAgent({ name: "worker", model: scriptedModel("new"), instructions: "Something else." });
    const second = await stage().open({ agents: [changed] });
    const agent = await second.find("r");
    await agent.start();
    const turn = agent.turn("r#1");
    expect((await turn.result).text).toBe("new");
    const warnings = (await eventsOfTurn(turn)).filter(({ type }) => type === "warning");
    expect(warnings).toMatchObject([{ code: "definition_changed" }]);
  });

  it("a failed agent is still failed in the next process and accepts a retry there", async () => {
    const busy = new Error("busy");
    const first = await stage().open({ agents: [worker({ error: busy })] });
    const before = await first.agent("worker", { agentId: "r" });
    await before.start();
    expect((await elapse(stage().clock, before.executeTurn("go").result)).status).toBe("failed");
    await first.shutdown();
    const second = await stage().open({ agents: [worker("fine")] });
    const agent = await second.find("r");
    expect(agent.state).toMatchObject({ status: "failed", turnCount: 1 });
    await agent.start();
    expect(agent.state.status).toBe("failed");
    expect((await agent.executeTurn(null).result).text).toBe("fine");
  });

  it("the wait before a retry continues across a restart, and the retry is made once", async () => {
    const passing = new ModelError("busy", { retryable: true, mayHaveBeenSent: false, retryAfterMs: 30_000 });
    const doomed = await stage().openProcess({ agents: [worker({ error: passing })] });
    const before = await doomed.runtime.agent("worker", { agentId: "r" });
    await before.start();
    const waiting = nextEvent(doomed.runtime, ({ type }) => type === "step.restarted");
    before.executeTurn("go").result.catch(() => undefined);
    await waiting;
    doomed.kill();
    stage().expireLeases();
    const model = scriptedModel("second attempt");
    const second = await stage().open({ agents: [defineAgent({ name: "worker", model })] });
    const agent = await second.find("r");
    await agent.start();
    await loopTurns(20);
    expect(model.calls).toHaveLength(0);
    stage().clock.advance(30_000);
    expect(await agent.turn("r#1").result).toMatchObject({ status: "completed", text: "second attempt", steps: 1 });
    expect(model.calls).toHaveLength(1);
    expect((await entriesOfType(stage().look(), "r", "model.requested")).map(({ attempt }) => attempt)).toEqual([1, 2]);
  });
});
