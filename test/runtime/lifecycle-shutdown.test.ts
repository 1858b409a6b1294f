import { expect, it } from "vitest";
import { defineAgent, subagent, TurnInterruptedError } from "../../src/index.ts";
import { type ModelScript, scriptedModel } from "../../src/testing/index.ts";
import { entriesOf, loopTurns } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling, createGate } from "../support/turn-probes.ts";

const aWhile = 30;
const worker = (script: ModelScript) => defineAgent({ name: "worker", model: scriptedModel(script) });

const leading = (childScript: ModelScript) =>
  defineAgent({
    name: "lead",
    model: scriptedModel(({ messages }) =>
      messages.at(-1)?.role === "tool" ? "all done" : calling({ name: "child", arguments: { input: "x" } }),
    ),
    tools: [subagent(defineAgent({ name: "child", model: scriptedModel(childScript) }))],
  });

describeRuntimes("shutdown", (stage) => {
  it("L6: mid-turn sets the status to shutdown, and only start() ends it: neither recover() nor a deadline does", async () => {
    const gate = createGate<string>();
    const runtime = await stage().open({ agents: [leading((_request, { signal }) => gate.pass(signal))] });
    const agent = await runtime.agent("lead", { agentId: "s" });
    await agent.start();
    const turn = agent.executeTurn("go", { budget: { deadline: stage().clock.now() + 60_000 } });
    await gate.reached();
    await agent.shutdown();
    expect(agent.state).toMatchObject({ status: "shutdown", openTurnId: "s#1", turnCount: 0 });
    gate.open("child done");
    await loopTurns(aWhile);
    stage().clock.advance(61_000);
    await loopTurns(aWhile);
    expect(await runtime.recover()).toEqual([]);
    expect(agent.state.status).toBe("shutdown");
    const ends = (await runtime.list()).map(({ agentId }) => entriesOf(stage().look(), agentId));
    expect((await Promise.all(ends)).flat().filter(({ type }) => type === "turn.ended")).toEqual([]);
    await agent.start();
    expect(await turn.result).toMatchObject({ status: "stopped", stopReason: "time_limit" });
    expect(agent.state).toMatchObject({ status: "ready", turnCount: 1 });
  });

  it("an abort just before a shutdown is durable: the next process ends the turn without another call", async () => {
    const gate = createGate<string>();
    const first = await stage().open({ agents: [worker((_request, { signal }) => gate.pass(signal))] });
    const before = await first.agent("worker", { agentId: "s" });
    await before.start();
    const turn = before.executeTurn("go");
    await gate.reached();
    await turn.abort("last wish");
    const [result] = await Promise.allSettled([turn.result, first.shutdown()]);
    const model = scriptedModel("never");
    const second = await stage().open({ agents: [defineAgent({ name: "worker", model })] });
    const agent = await second.find("s");
    await agent.start();
    const ended = await agent.turn("s#1").result;
    expect(ended).toMatchObject({ status: "stopped", stopReason: "user_requested" });
    expect(ended.text).toContain("last wish");
    expect(model.calls).toHaveLength(0);
    // The caller that waited in the first process got a result or an error.
    const told = result.status === "fulfilled" ? result.value.status : (result.reason as Error).name;
    expect(["stopped", TurnInterruptedError.name]).toContain(told);
  });

  it("an abort before shutdown() of the agent ends the turn before it or at the next start()", async () => {
    const gate = createGate<string>();
    const runtime = await stage().open({ agents: [worker((_request, { signal }) => gate.pass(signal))] });
    const agent = await runtime.agent("worker", { agentId: "s" });
    await agent.start();
    const turn = agent.executeTurn("go");
    await gate.reached();
    await turn.abort("last wish");
    await agent.shutdown();
    await agent.start();
    expect(await turn.result).toMatchObject({ status: "stopped", stopReason: "user_requested" });
    expect(agent.state).toMatchObject({ status: "ready", turnCount: 1 });
  });

  it("of the runtime makes every later command fail with an error that states why, and can be called again", async () => {
    const runtime = await stage().open({ agents: [worker("fine")] });
    const agent = await runtime.agent("worker", { agentId: "s" });
    await agent.start();
    const turn = agent.executeTurn("go");
    await turn.result;
    await Promise.all([runtime.shutdown(), runtime.shutdown()]);
    await runtime.shutdown();
    for (const command of [
      () => agent.executeTurn("more").result,
      () => agent.turn("s#1").result,
      () => agent.pause(),
      () => agent.resume(),
      () => agent.abort(),
      () => turn.abort(),
    ]) {
      await expect(command()).rejects.toThrow(/was shut down/);
    }
    const record = await stage().look().readAgent({ tenant: "default", agentId: "s" });
    expect(record).toMatchObject({ openTurnId: null, pause: null, abort: null, nextTurnNumber: 2 });
  });

  it("a turn that is opened while the runtime shuts down is either refused or run later, never both", async () => {
    const first = await stage().open({ agents: [worker("first")] });
    const before = await first.agent("worker", { agentId: "s" });
    await before.start();
    const turn = before.executeTurn("go");
    const [id] = await Promise.allSettled([turn.id, first.shutdown(), turn.result]);
    const second = await stage().open({ agents: [worker("second")] });
    const agent = await second.find("s");
    const known = agent.state.openTurnId !== null || agent.state.turnCount === 1;
    expect(known).toBe(id.status === "fulfilled");
    await agent.start();
    await loopTurns(aWhile);
    expect(agent.state).toMatchObject({ status: "ready", turnCount: known ? 1 : 0 });
  });

  it("a spawned child's handle reports the child's end after the child has left memory", async () => {
    const child = worker("child done");
    const lead = defineAgent({ name: "lead", model: scriptedModel("x") });
    const runtime = await stage().open({ agents: [lead, child] });
    const agent = await runtime.agent("lead", { agentId: "s" });
    await agent.start();
    const spawned = await agent.spawn(child, "do it", { key: "one" });
    expect((await spawned.turn.result).text).toBe("child done");
    await loopTurns(aWhile);
    expect(spawned.agent.state).toMatchObject({ status: "ready", turnCount: 1, openTurnId: null });
  });
});
