import { expect, it } from "vitest";
import { type Agent, type Budget, defineAgent, type Runtime, subagent, type TroupeEventOf } from "../../src/index.ts";
import { type FakeClock, scriptedModel } from "../../src/testing/index.ts";
import { settled } from "../contracts/entry-fixtures.ts";
import { openLine, waiting } from "../contracts/line-fixtures.ts";
import { NOW, TENANT } from "../contracts/names.ts";
import { agentKey } from "../contracts/stores-fixtures.ts";
import { entriesOfType, loopTurns } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling, createGate } from "../support/turn-probes.ts";

/** Advances the clock in steps, so that everything due runs before more time passes. */
async function pass(clock: FakeClock, ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= 250) {
    clock.advance(Math.min(250, left));
    await loopTurns(3);
  }
  await loopTurns(20);
}

type Warning = TroupeEventOf<"budget.warning">;

const warningsOf = (runtime: Runtime, agentId: string) => entriesOfType(runtime.stores, agentId, "budget.warning");

async function open(runtime: Runtime, life?: Budget): Promise<Agent> {
  const agent = await runtime.agent("worker", { agentId: "t", ...(life ? { budget: life } : {}) });
  await agent.start();
  return agent;
}

describeRuntimes("warnings of time limits", (stage) => {
  it("a deadline warns at 80 % of its time, in the middle of a call, and cuts the call when it expires", async () => {
    const gate = createGate<string>();
    const model = scriptedModel((_request, { signal }) => gate.pass(signal));
    const runtime = await stage().open({ agents: [defineAgent({ name: "worker", model })] });
    const events: Warning[] = [];
    runtime.subscribe((event) => void (event.type === "budget.warning" && events.push(event)));
    const agent = await open(runtime);
    const deadline = stage().clock.now() + 60_000;
    const turn = agent.executeTurn("go", { budget: { deadline } });
    await gate.reached();
    await pass(stage().clock, 47_999);
    expect(events).toEqual([]);
    await pass(stage().clock, 1);
    expect(events).toMatchObject([
      {
        agentId: "t",
        turnId: "t#1",
        accountId: "turn:t#1",
        limit: "deadlineAt",
        used: deadline - 12_000,
        max: deadline,
      },
    ]);
    expect(events[0]?.message).toBe("worker, this turn: its deadline 2026-01-01 00:01:00 UTC is 12 seconds away");
    await pass(stage().clock, 12_250);
    expect(await turn.result).toMatchObject({ status: "stopped", stopReason: "time_limit" });
    expect(events).toHaveLength(1);
  });

  it("maxSeconds warns once while the work continues, and cuts it in time", async () => {
    const gate = createGate<string>();
    const model = scriptedModel((_request, { signal }) => gate.pass(signal));
    const runtime = await stage().open({ agents: [defineAgent({ name: "worker", model })] });
    const agent = await open(runtime, { maxSeconds: 100 });
    const turn = agent.executeTurn("go", { budget: { maxSeconds: 1 } });
    await gate.reached();
    stage().clock.advance(799);
    await loopTurns(20);
    expect(await warningsOf(runtime, "t")).toEqual([]);
    stage().clock.advance(1);
    await loopTurns(50);
    const warning = { accountId: "turn:t#1", limit: "maxActiveMs", used: 800, max: 1_000 };
    expect(await warningsOf(runtime, "t")).toMatchObject([warning]);
    stage().clock.advance(200);
    await loopTurns(20);
    expect(await turn.result).toMatchObject({ status: "stopped", stopReason: "time_limit" });
    expect(await warningsOf(runtime, "t")).toMatchObject([warning]);
  });

  it("a parent receives a warning for the time that its children use", async () => {
    const gate = createGate<string>();
    const child = defineAgent({ name: "child", model: scriptedModel((_request, { signal }) => gate.pass(signal)) });
    const model = scriptedModel([calling({ name: "child", arguments: { input: "x" } }), "done"]);
    const definition = defineAgent({ name: "worker", model, tools: [subagent(child)], budget: { maxSeconds: 10 } });
    const runtime = await stage().open({ agents: [definition] });
    const turn = (await open(runtime)).executeTurn("go");
    await gate.reached();
    await pass(stage().clock, 8_000);
    const [warning, ...more] = await warningsOf(runtime, "t");
    expect([warning?.accountId, warning?.limit, more]).toEqual(["turn:t#1", "maxActiveMs", []]);
    gate.open("child done");
    expect(await turn.result).toMatchObject({ status: "completed" });
    expect(await warningsOf(runtime, "t")).toHaveLength(1);
  });

  it("a warning is neither lost nor duplicated if the process dies before or after it", async () => {
    const gates = [createGate<string>(), createGate<string>(), createGate<string>()];
    const definition = (index: number) => {
      const model = scriptedModel((_request, { signal }) => gates[index]?.pass(signal) ?? "");
      return defineAgent({ name: "worker", model });
    };
    const first = await stage().openProcess({ agents: [definition(0)] });
    const budget = { deadline: stage().clock.now() + 100_000 };
    (await open(first.runtime)).executeTurn("go", { budget }).result.catch(() => undefined);
    await gates[0]?.reached();
    first.kill();
    stage().expireLeases();
    const second = await stage().openProcess({ agents: [definition(1)] });
    await second.runtime.recover();
    await gates[1]?.reached();
    expect(await warningsOf(second.runtime, "t")).toEqual([]);
    await pass(stage().clock, 80_000);
    expect(await warningsOf(second.runtime, "t")).toMatchObject([{ limit: "deadlineAt", accountId: "turn:t#1" }]);
    second.kill();
    stage().expireLeases();
    const third = await stage().openProcess({ agents: [definition(2)] });
    await third.runtime.recover();
    const turn = (await third.runtime.find("t")).turn("t#1");
    await pass(stage().clock, 20_000);
    expect(await turn.result).toMatchObject({ stopReason: "time_limit" });
    expect(await warningsOf(third.runtime, "t")).toHaveLength(1);
  });

  it("any living process passes on the turn of an agent that was offered room and never asks", async () => {
    const stores = stage().look();
    stage().clock.jump(NOW - stage().clock.now());
    const { owner, ids, taken } = await openLine(stores, ["a", "b"], 900);
    const { posted } = await owner.commit(settled(taken, { tokens: 0 }), NOW);
    expect(posted).toEqual([ids[0]]);
    // This process does not know these agents, but still fires their alarms.
    await stage().open({ tenant: TENANT, agents: [defineAgent({ name: "worker", model: scriptedModel("x") })] });
    const told = async () => (await stores.inbox(agentKey(ids[1]))).length;
    expect(await told()).toBe(0);
    await pass(stage().clock, 15_000);
    expect(await told()).toBe(1);
    expect(await waiting(stores)).toEqual([ids[1]]);
  });
});
