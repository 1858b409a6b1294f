import { expect, it } from "vitest";
import { type AgentOptions, AlreadyOwnedError, defineAgent, subagent } from "../../src/index.ts";
import { type FakeClock, type ModelScript, scriptedModel } from "../../src/testing/index.ts";
import { entriesOfType, loopTurns, orderFault, toolTextsOf } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { far } from "../support/under-way.ts";
import { calling, createGate, eventsOfTurn, nextEvent, typesOf } from "../support/turn-probes.ts";

const aWhile = 50;

/** Advances the clock in steps, so that everything due runs before more time passes. */
async function pass(clock: FakeClock, ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= 250) {
    clock.advance(Math.min(250, left));
    await loopTurns(3);
  }
}

describeRuntimes("time limits", (stage) => {
  const open = async (script: ModelScript, more: Partial<AgentOptions> = {}) => {
    const model = scriptedModel(script);
    const runtime = await stage().open({ agents: [defineAgent({ name: "worker", model, ...more })] });
    const agent = await runtime.agent("worker", { agentId: "t" });
    await agent.start();
    return { runtime, agent, model };
  };

  it("M4: a deadline cuts a call in flight and names the account", async () => {
    const gate = createGate<string>();
    const { agent } = await open((_request, { signal }) => gate.pass(signal));
    const turn = agent.executeTurn("go", { budget: { deadline: stage().clock.now() + 60_000 } });
    const events = eventsOfTurn(turn);
    await gate.reached();
    await pass(stage().clock, 59_999);
    expect(agent.state.status).toBe("busy");
    await pass(stage().clock, 251);
    const result = await turn.result;
    expect(result).toMatchObject({ status: "stopped", stopReason: "time_limit", steps: 1 });
    expect(result.signal).toMatchObject({ limit: "deadlineAt", accountId: "turn:t#1" });
    expect(typesOf(await events)).toContain("budget.exhausted");
    expect(agent.state.status).toBe("ready");
    expect((await agent.executeTurn("next", { budget: { maxSteps: 0 } }).result).steps).toBe(0);
  });

  it("a time limit is journalled once, even if that commit takes long", async () => {
    // Because of the hook, the turn's first entry is committed before the intent of its first call.
    const hooks = { beforeLlm: () => undefined };
    const agents = [defineAgent({ name: "t", model: scriptedModel(() => "the end"), hooks })];
    const runtime = await stage().open({ agents, through: (stores) => far(stores, 150) });
    const agent = await runtime.agent("t", { agentId: "t" });
    await agent.start();
    const turn = agent.executeTurn("go", { budget: { deadline: stage().clock.now() + 15_000 } });
    // A commit takes 12.5 s, so the deadline passes while the intent is being committed.
    await pass(stage().clock, 60_000);
    expect(await turn.result).toMatchObject({ status: "stopped", stopReason: "time_limit" });
    expect(await entriesOfType(stage().look(), "t", "timer.due")).toHaveLength(1);
  });

  it("M4: maxSeconds cuts a call in flight", async () => {
    const gate = createGate<string>();
    const { agent } = await open((_request, { signal }) => gate.pass(signal), { budget: { maxSeconds: 10 } });
    const turn = agent.executeTurn("go");
    await gate.reached();
    await pass(stage().clock, 9_999);
    expect(agent.state.status).toBe("busy");
    await pass(stage().clock, 251);
    expect(await turn.result).toMatchObject({ stopReason: "time_limit", signal: { limit: "maxActiveMs" } });
  });

  it("a deadline also expires while the agent is paused, and ends the turn", async () => {
    const gate = createGate<string>();
    const { agent, model } = await open((_request, { signal }) => gate.pass(signal));
    const budget = { deadline: stage().clock.now() + 10_000 };
    await agent.pause();
    const turn = agent.executeTurn("go", { budget });
    await agent.resume();
    await gate.reached();
    const pausing = agent.pause();
    await pass(stage().clock, 10_250);
    await pausing;
    expect(await turn.result).toMatchObject({ status: "stopped", stopReason: "time_limit" });
    expect(model.calls).toHaveLength(1);
    expect(agent.state).toMatchObject({ status: "paused", openTurnId: null });
  });

  it("time spent paused mid-turn is not working time", async () => {
    const gates = [createGate<string>(), createGate<string>()];
    const child = defineAgent({
      name: "child",
      model: scriptedModel(async (_request, { signal }) => (await gates[0]?.pass(signal)) ?? ""),
    });
    const { agent } = await open(
      async (_request, { index, signal }) =>
        index === 0 ? calling({ name: "child", arguments: { input: "x" } }) : ((await gates[1]?.pass(signal)) ?? ""),
      { tools: [subagent(child)], budget: { maxSeconds: 10 } },
    );
    const turn = agent.executeTurn("go");
    await gates[0]?.reached();
    await pass(stage().clock, 4_000);
    await agent.pause();
    gates[0]?.open("child done");
    await loopTurns(aWhile);
    stage().clock.advance(3_600_000);
    await loopTurns(aWhile);
    expect(agent.state.status).toBe("paused");
    await agent.resume();
    await gates[1]?.reached();
    await pass(stage().clock, 5_000);
    expect(agent.state.status).toBe("busy");
    await pass(stage().clock, 1_250);
    expect(await turn.result).toMatchObject({ status: "stopped", stopReason: "time_limit" });
  });

  it("M4: a time limit ends the subtree of its turn", async () => {
    const gate = createGate<string>();
    const leaf = defineAgent({ name: "leaf", model: scriptedModel((_request, { signal }) => gate.pass(signal)) });
    const middle = defineAgent({
      name: "middle",
      model: scriptedModel(() => calling({ name: "leaf", arguments: { input: "x" } })),
      tools: [subagent(leaf)],
    });
    const { agent, runtime } = await open(() => calling({ name: "middle", arguments: { input: "x" } }), {
      tools: [subagent(middle)],
      budget: { maxSeconds: 30 },
    });
    const turn = agent.executeTurn("go");
    await gate.reached();
    await pass(stage().clock, 30_250);
    expect(await turn.result).toMatchObject({ status: "stopped", stopReason: "time_limit" });
    await loopTurns(aWhile);
    const records = await runtime.list();
    expect(records.map(({ openTurnId, turnCount }) => [openTurnId, turnCount])).toEqual(records.map(() => [null, 1]));
    for (const { agentId } of records) {
      expect(orderFault(await (await runtime.find(agentId)).getMessages())).toBeUndefined();
    }
    for (const account of await runtime.accounts("t")) {
      expect(account).toMatchObject({ activeCount: 0, reserved: { tokens: 0 } });
    }
  });

  it("a child's own time limit ends only the child", async () => {
    const gate = createGate<string>();
    const child = defineAgent({ name: "child", model: scriptedModel((_request, { signal }) => gate.pass(signal)) });
    const script: ModelScript = [calling({ name: "child", arguments: { input: "x" } }), "went on"];
    const { agent } = await open(script, { tools: [subagent(child, { budget: { maxSeconds: 5 } })] });
    const turn = agent.executeTurn("go");
    await gate.reached();
    await pass(stage().clock, 5_250);
    expect(await turn.result).toMatchObject({ status: "completed", text: "went on" });
    expect((await toolTextsOf(agent))[0]).toContain("stopped (time_limit)");
  });

  it("a deadline that expires without a running process ends the turn at recovery, before any call", async () => {
    const gate = createGate<string>();
    const budget = { deadline: stage().clock.now() + 60_000 };
    const doomed = await stage().openProcess({
      agents: [defineAgent({ name: "worker", model: scriptedModel(() => gate.pass()) })],
    });
    const before = await doomed.runtime.agent("worker", { agentId: "t" });
    await before.start();
    before.executeTurn("go", { budget }).result.catch(() => undefined);
    await gate.reached();
    doomed.kill();
    stage().clock.advance(120_000);
    const model = scriptedModel("never");
    const survivor = await stage().open({ agents: [defineAgent({ name: "worker", model })] });
    await survivor.recover();
    const agent = await survivor.find("t");
    expect(await agent.turn("t#1").result).toMatchObject({ status: "stopped", stopReason: "time_limit" });
    expect(model.calls).toHaveLength(0);
  });

  it("any living process fires a timer of an agent without an owner", async () => {
    const gate = createGate<string>();
    const agents = [defineAgent({ name: "worker", model: scriptedModel(() => gate.pass()) })];
    const doomed = await stage().openProcess({ agents });
    const living = await stage().open({ agents });
    const before = await doomed.runtime.agent("worker", { agentId: "t" });
    await before.start();
    before.executeTurn("go", { budget: { deadline: stage().clock.now() + 60_000 } }).result.catch(() => undefined);
    await gate.reached();
    doomed.kill();
    const over = nextEvent(living, ({ type }) => type === "turn.stopped");
    stage().expireLeases();
    await pass(stage().clock, 60_000);
    expect(await over).toMatchObject({ agentId: "t", stopReason: "time_limit" });
  });

  it("F17: a clock set forward fires deadlines at once, and moves no lease of a living process", async () => {
    const gate = createGate<string>();
    const { agent } = await open((_request, { signal }) => gate.pass(signal));
    const other = await stage().open({
      agents: [defineAgent({ name: "worker", model: scriptedModel("x") })],
    });
    const turn = agent.executeTurn("go", { budget: { deadline: stage().clock.now() + 300_000 } });
    await gate.reached();
    stage().clock.jump(600_000);
    await loopTurns(5);
    await expect((await other.find("t")).start()).rejects.toThrow(AlreadyOwnedError);
    expect(await turn.result).toMatchObject({ stopReason: "time_limit" });
  });

  it("F17: a clock set back changes neither order nor owner", async () => {
    const gates = [createGate<string>(), createGate<string>()];
    const { agent } = await open(async (_request, { index, signal }) => (await gates[index]?.pass(signal)) ?? "");
    const other = await stage().open({ agents: [defineAgent({ name: "worker", model: scriptedModel("x") })] });
    const first = agent.executeTurn("one");
    await gates[0]?.reached();
    stage().clock.jump(-600_000);
    gates[0]?.open("first");
    expect((await first.result).text).toBe("first");
    const events = eventsOfTurn(first);
    const second = agent.executeTurn("two", { budget: { maxSeconds: 10 } });
    await gates[1]?.reached();
    await expect((await other.find("t")).start()).rejects.toThrow(AlreadyOwnedError);
    const times = (await events).map(({ at }) => at);
    expect(times).toEqual(times.toSorted((a, b) => a - b));
    await pass(stage().clock, 10_250);
    expect(await second.result).toMatchObject({ stopReason: "time_limit" });
  });
});
