import { expect, it } from "vitest";
import { z } from "zod";
import { armFaultPoints } from "../../src/base/index.ts";
import { defineAgent, defineTool, subagent, type TurnResult } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { sweep } from "../support/full.ts";
import { entriesOf, entriesOfType, loopTurns, orderFault } from "../support/journal-probes.ts";
import { describeRuntimes, type Stage } from "../support/runtimes.ts";
import { type AskedCall, calling, createGate } from "../support/turn-probes.ts";

/** Counts the effects of both processes. */
interface Ledger {
  modelCalls: number;
  toolRuns: number;
}

/** The code of a killed process keeps running in this test; `isOver` keeps it from further effects. */
interface Life {
  isOver: boolean;
}

const never = Promise.withResolvers<never>().promise;

/** A lead that calls a tool and a helper, and then answers. Model calls and tool runs are counted. */
function team(life: Life, ledger: Ledger) {
  const look = defineTool({
    name: "look",
    description: "Looks.",
    parameters: z.object({}),
    effect: "none",
    execute: async () => {
      if (life.isOver) return await never;
      ledger.toolRuns += 1;
      return "seen";
    },
  });
  const model = (answers: readonly AskedCall[], last: string) =>
    scriptedModel(async ({ messages }) => {
      if (life.isOver) return await never;
      ledger.modelCalls += 1;
      const step = messages.filter(({ role }) => role === "tool").length;
      const next = answers[step];
      return next === undefined ? last : calling(next);
    });
  const helper = defineAgent({ name: "helper", model: model([], "helped") });
  return defineAgent({
    name: "lead",
    model: model(["look", { name: "helper", arguments: { input: "help" } }], "all done"),
    tools: [look, subagent(helper)],
    budget: { maxTokens: 1_000_000 },
  });
}

/** Kills the first process at the k-th hit of a fault point and lets another continue. Returns false if there was no such hit. */
async function survive(stage: Stage, point: string, hit: number, ledger: Ledger): Promise<boolean> {
  const agentId = `c-${point}-${hit}`;
  const life: Life = { isOver: false };
  const doomed = await stage.openProcess({ agents: [team(life, ledger)] });
  const struck = Promise.withResolvers<boolean>();
  const agent = await doomed.runtime.agent("lead", { agentId });
  await agent.start();
  const disarm = armFaultPoints([
    {
      name: point,
      hit,
      action: () => {
        life.isOver = true;
        doomed.kill();
        struck.resolve(true);
      },
    },
  ]);
  const turn = agent.executeTurn("go");
  turn.result.then(
    () => struck.resolve(false),
    () => struck.resolve(false),
  );
  const wasStruck = await struck.promise;
  disarm();
  if (!wasStruck) return false;
  await loopTurns(5);
  stage.expireLeases();
  const survivor = await stage.open({ agents: [team({ isOver: false }, ledger)] });
  const recovered = await survivor.find(agentId);
  await recovered.start();
  const { turnCount, openTurnId } = recovered.state;
  // A caller that got no turn id asks again.
  if (turnCount === 0 && openTurnId === null) await recovered.executeTurn("go").result;
  else if (turnCount === 0) await recovered.turn(`${agentId}#1`).result;
  return true;
}

describeRuntimes("a crash between commits", (stage) => {
  it.each([
    "commit.before",
    "commit.after",
    "commit.acknowledged",
    "model.intent",
    "model.effect",
    "model.result",
    "call.gated",
    "tool.intent",
    "tool.effect",
    "tool.result",
    "child.intent",
    "child.result",
    "turn.result",
  ])(`F1, F2: at ${sweep.told} of %s leaves one turn, ended once, with a legal history`, async (point) => {
    const onlooker = stage().look();
    let hits = 0;
    for (let hit = 1; hit <= sweep.most; hit += 1) {
      const ledger: Ledger = { modelCalls: 0, toolRuns: 0 };
      if (!(await survive(stage(), point, hit, ledger))) break;
      hits = hit;
      const agentId = `c-${point}-${hit}`;
      const entries = await entriesOf(onlooker, agentId);
      expect(entries.map(({ seq }) => seq)).toEqual(entries.map((_entry, index) => index + 1));
      expect(entries.filter(({ type }) => type === "turn.ended")).toMatchObject([{ outcome: "completed", steps: 3 }]);
      expect(entries.filter(({ type }) => type === "child.spawned")).toHaveLength(1);
      expect(entries.filter(({ type }) => type === "child.ended")).toHaveLength(1);
      const messages = await onlooker.messages({ tenant: "default", agentId });
      expect(orderFault(messages)).toBeUndefined();
      expect(messages.map(({ content }) => content)).toEqual(["go", "", "seen", "", "helped", "all done"]);
      // Four model calls and one tool run are needed; the one in flight when the process died is repeated once.
      expect(ledger.modelCalls).toBeLessThanOrEqual(5);
      expect(ledger.toolRuns).toBeLessThanOrEqual(2);
      for (const account of await onlooker.accounts("default", agentId)) {
        expect(account).toMatchObject({ activeCount: 0, reserved: { tokens: 0, costMicros: 0 } });
      }
    }
    expect(hits).toBeGreaterThan(0);
  });

  it("F15: a model call in flight is settled in full as unconfirmed and repeated exactly once", async () => {
    const gate = createGate<string>();
    const budget = { maxTokens: 1_000_000 };
    const agents = (script: Parameters<typeof scriptedModel>[0]) => [
      defineAgent({ name: "worker", model: scriptedModel(script), budget, maxOutputTokens: 500 }),
    ];
    const doomed = await stage().openProcess({ agents: agents(async () => await gate.pass()) });
    const before = await doomed.runtime.agent("worker", { agentId: "f" });
    await before.start();
    before.executeTurn("go").result.catch(() => undefined);
    await gate.reached();
    doomed.kill();
    gate.open("lost");
    await loopTurns(10);
    stage().expireLeases();
    const model = scriptedModel("asked again");
    const survivor = await stage().open({
      agents: [defineAgent({ name: "worker", model, budget, maxOutputTokens: 500 })],
    });
    const agent = await survivor.find("f");
    await agent.start();
    expect(await agent.turn("f#1").result).toMatchObject({ status: "completed", text: "asked again", steps: 1 });
    expect(model.calls).toHaveLength(1);
    const requested = await entriesOfType(stage().look(), "f", "model.requested");
    const failed = await entriesOfType(stage().look(), "f", "model.failed");
    expect(requested.map(({ attempt, step }) => [step, attempt])).toEqual([
      [1, 1],
      [1, 2],
    ]);
    expect(failed).toMatchObject([{ attempt: 1, error: { code: "interrupted" }, settlement: { unconfirmed: true } }]);
    const [account] = await survivor.accounts("f");
    const lost = requested[0]?.reservation?.tokens ?? 0;
    expect(lost).toBeGreaterThan(500);
    expect(account).toMatchObject({ reserved: { tokens: 0 }, unconfirmed: { tokens: lost }, used: { steps: 1 } });
    expect(account?.used.tokens).toBeGreaterThan(lost);
  });

  it("F15: a crash loop cannot overspend: each lost call counts in full until the budget is spent", async () => {
    const budget = { maxTokens: 1_300 };
    let calls = 0;
    let ended: TurnResult | undefined;
    for (let life = 0; life < 5; life += 1) {
      const gate = createGate<string>();
      const script = async (): Promise<string> => {
        calls += 1;
        return await gate.pass();
      };
      const worker = defineAgent({ name: "worker", model: scriptedModel(script), budget, maxOutputTokens: 300 });
      const doomed = await stage().openProcess({ agents: [worker] });
      const agent = await doomed.runtime.agent("worker", { agentId: "loop" });
      await agent.start();
      const turn = life === 0 ? agent.executeTurn("go") : agent.turn("loop#1");
      const over = await Promise.race([turn.result, gate.reached()]);
      const [account] = await doomed.runtime.accounts("loop");
      expect((account?.used.tokens ?? 0) + (account?.reserved.tokens ?? 0)).toBeLessThanOrEqual(1_300);
      ended = over ?? undefined;
      if (ended) break;
      doomed.kill();
      await loopTurns(5);
      stage().expireLeases();
    }
    expect(ended).toMatchObject({ status: "stopped", stopReason: "token_limit" });
    expect(calls).toBe(4);
  });
});
