import { expect, test } from "vitest";
import { limitsChangeOf, limitsOf, type BudgetChange } from "../../src/budget/index.ts";
import type { Stores } from "../../src/stores/index.ts";
import { settled } from "./entry-fixtures.ts";
import { call, only, openLine, waiting } from "./line-fixtures.ts";
import { NOW, ROOT, TENANT } from "./names.ts";
import { identityOf, agentKey, openAgent } from "./stores-fixtures.ts";
import { openChild } from "./tree-fixtures.ts";

export function setBudgetContract(subject: () => Stores): void {
  const change = (budget: BudgetChange, agentId: string = ROOT, at: number = NOW) =>
    subject().setBudget(agentKey(agentId), { change: limitsChangeOf(budget, at), by: "ann" }, at);
  const lifeOf = async (agentId: string = ROOT) => await subject().account(TENANT, `agent:${agentId}`);

  test("the account has the new limits immediately, and its agent is notified of the new and old ones", async () => {
    await openAgent(subject(), { budget: { maxTokens: 1_000, maxSteps: 5 } });
    const limits = limitsOf({ maxTokens: 2_000, maxSteps: 5, maxCost: 0.5 });
    const outcome = await change({ maxTokens: 2_000, maxCost: 0.5 });
    expect(outcome).toMatchObject({ type: "changed", posted: [ROOT], account: { limits } });
    expect(await lifeOf()).toMatchObject({ limits, firstLimits: { maxTokens: 1_000, maxSteps: 5 } });
    expect(await subject().inbox(agentKey())).toMatchObject([
      {
        kind: "budget.changed",
        binding: { strict: false, maxTokens: 2_000, maxCostMicros: 500_000 },
        change: { by: "ann", accountId: `agent:${ROOT}`, limits, before: { maxTokens: 1_000, maxSteps: 5 } },
      },
    ]);
    expect((await subject().readAgent(agentKey()))?.binding).toMatchObject({
      maxTokens: 2_000,
      maxCostMicros: 500_000,
    });
  });

  test("null removes a limit, and the initial limits are unchanged", async () => {
    await openAgent(subject(), { budget: { maxTokens: 1_000 } });
    await change({ maxTokens: 2_000 });
    await change({ maxTokens: null, maxSteps: 7 });
    expect(await lifeOf()).toMatchObject({ limits: { maxSteps: 7 }, firstLimits: { maxTokens: 1_000 } });
    expect((await lifeOf())?.limits).not.toHaveProperty("maxTokens");
    expect(await subject().readAgent(agentKey())).not.toHaveProperty("binding");
  });

  test("equal limits change nothing", async () => {
    await openAgent(subject(), { budget: { maxTokens: 1_000 } });
    expect(await change({ maxTokens: 1_000, maxCost: null })).toMatchObject({ type: "unchanged" });
    expect(await subject().inbox(agentKey())).toEqual([]);
    expect(await lifeOf()).not.toHaveProperty("firstLimits");
  });

  test("agents that are unknown, shut down, or without a budget are refused", async () => {
    expect(await change({ maxTokens: 1 }, "nobody")).toEqual({ type: "notFound" });
    await subject().createAgent(identityOf("free"), null);
    expect(await change({ maxTokens: 1 }, "free")).toEqual({ type: "unlimited" });
    const owner = await openAgent(subject(), { budget: { maxTokens: 1_000 } });
    await owner.commit({
      owned: { status: "shutdown", turnCount: 0, lastActivity: NOW, error: null, checkpoint: null },
    });
    expect(await change({ maxTokens: 5 })).toEqual({ type: "asleep" });
    expect((await lifeOf())?.limits).toEqual({ maxTokens: 1_000 });
  });

  test("agents that wait for budget are woken by a raised limit and then granted", async () => {
    const { children, ids } = await openLine(subject(), ["a", "b"]);
    const outcome = await change({ maxTokens: 1_200 });
    expect(outcome).toMatchObject({ type: "changed", posted: [ids[0], ROOT, ids[1]] });
    expect((await subject().inbox(agentKey(ids[0]))).map(({ kind }) => kind)).toContain("budget.freed");
    expect((await subject().inbox(agentKey(ids[1]))).map(({ kind }) => kind)).not.toContain("budget.freed");
    const a = only(children, 0);
    expect((await a.commit({ entries: [call(a, 500)] })).entries).toMatchObject([{ type: "model.requested" }]);
    expect(await waiting(subject())).toEqual([ids[1]]);
  });

  test("a limit below the used and reserved amounts keeps the calls in flight and refuses the next one", async () => {
    const { owner, children, ids, taken } = await openLine(subject(), ["a"]);
    expect(await change({ maxTokens: 300 })).toMatchObject({ type: "changed" });
    expect((await subject().inbox(agentKey(ids[0]))).map(({ kind }) => kind)).toContain("budget.freed");
    const a = only(children, 0);
    const refused = { type: "intent.refused", reason: "budget", limit: "maxTokens", max: 300 };
    expect((await a.commit({ entries: [call(a, 500)] })).entries).toMatchObject([refused]);
    expect(await waiting(subject())).toEqual([]);
    expect(await lifeOf()).toMatchObject({ used: { tokens: 0 }, reserved: { tokens: 600 } });
    await owner.commit(settled(taken, { tokens: 600 }));
    expect(await lifeOf()).toMatchObject({ used: { tokens: 600 }, reserved: { tokens: 0 } });
    expect((await owner.commit({ entries: [call(owner, 300)] })).entries).toMatchObject([{ ...refused, used: 600 }]);
  });

  test("a subagent's limit may be raised, and stays within its ancestors' limits", async () => {
    const owner = await openAgent(subject(), { budget: { maxTokens: 1_000 } });
    const kid = await openChild(owner, "kid", { maxTokens: 400 });
    expect((await kid.commit({ entries: [call(kid, 500)] })).entries).toMatchObject([{ type: "model.requested" }]);
    const { agentId } = kid.key;
    expect(await change({ maxTokens: 5_000 }, agentId)).toMatchObject({ type: "changed", posted: [agentId] });
    expect((await kid.commit({ entries: [call(kid, 700)] })).entries).toMatchObject([
      { reason: "mustWait", accountId: `agent:${ROOT}` },
    ]);
    expect((await kid.commit({ entries: [call(kid, 5_000)] })).entries).toMatchObject([{ accountId: `agent:${ROOT}` }]);
    expect((await subject().readAgent(kid.key))?.binding).toMatchObject({ maxTokens: 1_000 });
  });

  test("the limits that apply to descendants are updated, and held agents are notified", async () => {
    const owner = await openAgent(subject(), { budget: { maxSteps: 100 } });
    const kid = await openChild(owner, "kid", { maxTokens: 4_000 });
    await change({ maxTokens: 3_000, strict: true });
    const binding = { strict: true, maxTokens: 3_000 };
    expect((await subject().readAgent(kid.key))?.binding).toMatchObject(binding);
    const items = await subject().inbox(kid.key);
    expect(items.filter(({ kind }) => kind === "budget.changed")).toMatchObject([{ binding }]);
    expect(items.at(-1)).not.toHaveProperty("change");
  });

  test("limits on time move their timers", async () => {
    await openAgent(subject(), { budget: { deadline: NOW + 1_000 } });
    const alarms = async () => (await subject().dueTimers(Number.MAX_SAFE_INTEGER, 10)).map(({ dueAt }) => dueAt - NOW);
    expect(await alarms()).toEqual([800]);
    const outcome = await change({ deadline: NOW + 10_000 });
    expect(outcome).toMatchObject({ timers: [{ limit: "deadlineAt", limitAt: NOW + 10_000 }] });
    expect(await alarms()).toEqual([8_000]);
    await change({ deadline: null });
    expect(await alarms()).toEqual([]);
  });

  test("the warning of a raised limit is issued again", async () => {
    const owner = await openAgent(subject(), { budget: { maxTokens: 1_000 } });
    const spend = async (tokens: number) => {
      const { entries } = await owner.commit({ entries: [call(owner, 400)] });
      const [entry] = entries;
      if (entry?.type !== "model.requested" || !entry.reservation) throw new Error("the call was refused");
      return (await owner.commit(settled(entry.reservation, { tokens }))).warnings;
    };
    expect(await spend(800)).toMatchObject([{ limit: "maxTokens", used: 800, max: 1_000 }]);
    await change({ maxTokens: 2_000 });
    expect(await spend(100)).toEqual([]);
    expect(await spend(800)).toMatchObject([{ limit: "maxTokens", used: 1_700, max: 2_000 }]);
  });
}
