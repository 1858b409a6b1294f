import { expect, test } from "vitest";
import type { Stores } from "../../src/stores/index.ts";
import { modelRequested, note } from "./entry-fixtures.ts";
import { NOW, ROOT, TENANT, TURN } from "./names.ts";
import { agentKey, type OpenOptions, type Owner, openAgent } from "./stores-fixtures.ts";
import { openChild } from "./tree-fixtures.ts";

const turnAccount = `turn:${TURN}`;
const far = Number.MAX_SAFE_INTEGER;

/** With its first turn open, as commands see it. */
async function openAtWork(stores: Stores, options: OpenOptions): Promise<Owner> {
  const owner = await openAgent(stores, options);
  await stores.openTurn(owner.key, { input: "go", actorId: null, limits: null, ifBusy: "refuse" }, NOW);
  await owner.commit({ acknowledged: [`turn:${TURN}`] });
  return owner;
}

async function hear(stores: Stores, now: number, steady = now): Promise<string[]> {
  const posted: string[] = [];
  for (const timer of await stores.dueTimers(now, 10, steady)) {
    if (timer.kind === "limit") posted.push(...(await stores.fireTimer(timer, now, steady)).posted);
  }
  return posted;
}

const work = (isActive: boolean, agentId: string = ROOT) => ({
  entries: [note("work")],
  moves: [{ type: "activity", accountId: `turn:${agentId}#1`, isActive } as const],
});

export function warningsContract(subject: () => Stores): void {
  test("at 80 % of the time until a deadline its agent is notified once; after that only the deadline has a timer", async () => {
    const owner = await openAtWork(subject(), { turnBudget: { deadline: NOW + 1_000 } });
    expect(await hear(subject(), NOW + 799)).toEqual([]);
    const alarms = await subject().dueTimers(NOW + 800, 10);
    expect(await hear(subject(), NOW + 800)).toEqual([ROOT]);
    const warning = {
      kind: "budget.warning",
      accountId: turnAccount,
      limit: "deadlineAt",
      used: NOW + 800,
      max: NOW + 1_000,
    };
    expect(await subject().inbox(agentKey())).toMatchObject([warning]);
    // Another process may have fired the same timer.
    const [alarm] = alarms.flatMap((timer) => (timer.kind === "limit" ? timer : []));
    expect(alarm && (await subject().fireTimer(alarm, NOW + 801)).posted).toEqual([]);
    const due = await subject().dueTimers(far, 10);
    expect(due).toMatchObject([{ id: `deadlineAt:${turnAccount}`, dueAt: NOW + 1_000 }]);
    expect(due[0]).not.toHaveProperty("limitAt");
    expect((await owner.commit({ entries: [modelRequested()] }, NOW + 900)).warnings).toEqual([]);
    expect(await subject().inbox(agentKey())).toHaveLength(1);
  });

  test("at 80 % of the working time the agent is notified while the work goes on", async () => {
    const owner = await openAtWork(subject(), { turnBudget: { maxSeconds: 10 } });
    await owner.commit(work(true));
    expect(await hear(subject(), NOW + 7_999)).toEqual([]);
    expect(await hear(subject(), NOW + 8_000)).toEqual([ROOT]);
    const warning = { kind: "budget.warning", accountId: turnAccount, limit: "maxActiveMs", used: 8_000, max: 10_000 };
    expect(await subject().inbox(agentKey())).toMatchObject([warning]);
    expect(await subject().dueTimers(far, 10)).toMatchObject([{ dueAt: NOW + 10_000 }]);
    expect((await owner.commit(work(false), NOW + 9_000)).warnings).toEqual([]);
    // The remaining time causes no second warning.
    await owner.commit(work(true), NOW + 20_000);
    expect(await subject().dueTimers(far, 10)).toMatchObject([{ dueAt: NOW + 21_000 }]);
  });

  test("usage of children counts: the agent is told which account it is", async () => {
    const owner = await openAtWork(subject(), { turnBudget: { maxSeconds: 10 } });
    const kid = await openChild(owner, "kid");
    await kid.commit(work(true, kid.key.agentId));
    expect(await hear(subject(), NOW + 8_000)).toEqual([ROOT]);
    expect((await subject().inbox(agentKey())).map(({ kind }) => kind)).toEqual(["budget.warning"]);
    expect(await subject().inbox(kid.key)).toEqual([]);
  });

  test("a commit that comes first issues the warning instead of the timer", async () => {
    const owner = await openAtWork(subject(), { turnBudget: { deadline: NOW + 1_000, maxSeconds: 10 } });
    await owner.commit(work(true));
    const { warnings } = await owner.commit({ entries: [modelRequested()] }, NOW + 900);
    expect(warnings).toMatchObject([{ limit: "deadlineAt", used: NOW + 900, max: NOW + 1_000 }]);
    expect(await hear(subject(), NOW + 999)).toEqual([]);
    const later = await owner.commit({ entries: [note("later")], moves: work(false).moves }, NOW + 8_500);
    expect(later.warnings).toMatchObject([{ limit: "maxActiveMs", used: 8_500 }]);
    expect(await subject().inbox(agentKey())).toEqual([]);
  });

  test("an agent at rest is not notified; only the deadline has a timer then", async () => {
    const owner = await openAgent(subject(), { budget: { deadline: NOW + 1_000 } });
    expect(await hear(subject(), NOW + 800)).toEqual([]);
    expect(await subject().inbox(agentKey())).toEqual([]);
    expect(await subject().dueTimers(far, 10)).toMatchObject([{ id: `deadlineAt:agent:${ROOT}`, dueAt: NOW + 1_000 }]);
    // The next spending on the account causes the warning.
    const { warnings } = await owner.commit({ entries: [modelRequested()] }, NOW + 850);
    expect(warnings).toMatchObject([{ accountId: `agent:${ROOT}`, limit: "deadlineAt" }]);
    expect(await subject().nextTimerAt()).toBe(NOW + 1_000);
  });

  test("a deadline that has passed, or had passed from the start, causes no warning", async () => {
    const owner = await openAtWork(subject(), { turnBudget: { deadline: NOW + 1_000 }, budget: { deadline: NOW - 5 } });
    const due = await subject().dueTimers(NOW, 10);
    expect(due).toMatchObject([{ id: `deadlineAt:agent:${ROOT}`, dueAt: NOW - 5 }]);
    expect(due[0]).not.toHaveProperty("limitAt");
    const { warnings } = await owner.commit({ entries: [note("late")], moves: work(true).moves }, NOW + 1_000);
    expect(warnings).toEqual([]);
    expect(await hear(subject(), NOW + 1_000)).toEqual([]);
    expect(await subject().accounts(TENANT, ROOT)).toMatchObject([{ warned: [] }, { warned: [] }]);
  });
}
