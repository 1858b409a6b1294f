import { expect, test } from "vitest";
import type { FiredTimer, Stores } from "../../src/stores/index.ts";
import { note } from "./entry-fixtures.ts";
import { NOW, ROOT, TENANT, TURN } from "./names.ts";
import { accountOf, identityOf, type Owner, openAgent } from "./stores-fixtures.ts";
import { openChild } from "./tree-fixtures.ts";

const turnAccount = `turn:${TURN}`;
const far = Number.MAX_SAFE_INTEGER;

/** Sets whether the agent's first turn is active. */
async function activity(owner: Owner, isActive: boolean, now: number) {
  const accountId = `turn:${owner.key.agentId}#1`;
  return owner.commit({ entries: [note("work")], moves: [{ type: "activity", accountId, isActive }] }, now);
}

/** Fires all due timers of accounts. */
async function hear(stores: Stores, now: number): Promise<FiredTimer[]> {
  const heard: FiredTimer[] = [];
  for (const timer of await stores.dueTimers(now, 10)) {
    if (timer.kind === "limit" || timer.kind === "claim") heard.push(await stores.fireTimer(timer, now));
  }
  return heard;
}

async function turnAccountIn(stores: Stores) {
  return (await stores.accounts(TENANT, ROOT)).find((account) => account.id === turnAccount);
}

/** The wall clock, set forward or back. */
const tenMinutes = 600_000;

export function timersContract(subject: () => Stores): void {
  test("an account opened with a deadline has the timer of its warning, then its own; the turn's end clears it", async () => {
    const owner = await openAgent(subject(), { turnBudget: { deadline: NOW + 500 } });
    await subject().openTurn(owner.key, { input: "go", actorId: null, limits: null, ifBusy: "refuse" }, NOW);
    const warning = {
      kind: "limit",
      tenant: TENANT,
      agentId: ROOT,
      id: `deadlineAt:${turnAccount}`,
      dueAt: NOW + 400,
      limitAt: NOW + 500,
      accountId: turnAccount,
      limit: "deadlineAt",
    };
    expect(await subject().nextTimerAt()).toBe(NOW + 400);
    expect(await subject().dueTimers(NOW + 399, 10)).toEqual([]);
    expect(await subject().dueTimers(NOW + 400, 10)).toEqual([warning]);
    const { limitAt, ...others } = warning;
    const own = { ...others, dueAt: limitAt };
    expect(await hear(subject(), NOW + 400)).toEqual([{ posted: [ROOT], timers: [own] }]);
    expect(await subject().dueTimers(far, 10)).toEqual([own]);
    await owner.commit({ entries: [note("ended")], closedTurnId: TURN });
    expect(await subject().nextTimerAt()).toBeUndefined();
  });

  test("a commit can clear timers, too", async () => {
    const owner = await openAgent(subject(), { turnBudget: { deadline: NOW + 500 } });
    await owner.commit({ entries: [note("ended")], clearedTimers: [`deadlineAt:${turnAccount}`, "unknown"] });
    expect(await subject().nextTimerAt()).toBeUndefined();
    expect(await subject().dueTimers(far, 10)).toEqual([]);
  });

  test("working time is measured by the steady time, deadlines by the wall clock", async () => {
    const turnBudget = { maxSeconds: 10, deadline: NOW + 20_000 };
    const owner = await openAgent(subject(), { turnBudget });
    const accountId = turnAccount;
    const move = (isActive: boolean) => ({
      entries: [note("work")],
      moves: [{ type: "activity", accountId, isActive } as const],
    });
    await subject().commit([owner.batch(move(true))], NOW - tenMinutes, NOW);
    const due = async (passed: number, set: number) =>
      (await subject().dueTimers(NOW + passed + set, 10, NOW + passed)).map(({ id }) => id);
    // The timers of the warnings, at 80 %.
    expect(await due(7_999, 0)).toEqual([]);
    expect(await due(7_999, tenMinutes)).toEqual([`deadlineAt:${turnAccount}`]);
    expect(await due(15_000, -tenMinutes)).toEqual([`maxActiveMs:${turnAccount}`]);
    expect(await due(16_000, 0)).toHaveLength(2);
  });

  test("an agent created with a deadline also has a timer", async () => {
    const account = accountOf(`agent:${ROOT}`, { deadline: NOW + 9 });
    await subject().createAgent(identityOf(ROOT, { accountId: account.id }), account);
    expect(await subject().dueTimers(NOW + 9, 10)).toMatchObject([{ agentId: ROOT, id: `deadlineAt:${account.id}` }]);
  });

  test("the timer of active time is set when work begins and cleared when the last work ends", async () => {
    const owner = await openAgent(subject(), { turnBudget: { maxSeconds: 10 } });
    const child = await openChild(owner, "kid");
    const timer = { kind: "limit", id: `maxActiveMs:${turnAccount}`, dueAt: NOW + 8_000, limitAt: NOW + 10_000 };
    expect((await activity(owner, true, NOW)).timers).toMatchObject([timer]);
    expect((await activity(child, true, NOW + 100)).timers).toEqual([]);
    await activity(owner, false, NOW + 200);
    expect(await subject().dueTimers(far, 10)).toMatchObject([timer]);
    await activity(child, false, NOW + 3000);
    expect(await subject().nextTimerAt()).toBeUndefined();
    const idle = { used: { activeMs: 3000 }, isActive: false, activeCount: 0, activeSince: null };
    expect(await turnAccountIn(subject())).toMatchObject(idle);
    // Used time is not given back: seven seconds are left, five until the warning.
    await activity(owner, true, NOW + 60_000);
    expect(await subject().dueTimers(far, 10)).toMatchObject([{ dueAt: NOW + 65_000, limitAt: NOW + 67_000 }]);
  });

  test("an active turn is counted once, however often it is reported; a newly opened account is not active", async () => {
    const owner = await openAgent(subject(), { turnBudget: { maxSeconds: 10 } });
    const child = await openChild(owner, "kid");
    expect(await turnAccountIn(subject())).toMatchObject({ isActive: false, activeCount: 0 });
    await activity(child, false, NOW);
    await activity(owner, true, NOW);
    await activity(owner, true, NOW + 50);
    await activity(child, true, NOW + 100);
    await child.acquire();
    await activity(child, true, NOW + 150);
    expect(await turnAccountIn(subject())).toMatchObject({ isActive: true, activeCount: 2, activeSince: NOW });
    await activity(child, false, NOW + 200);
    await activity(child, false, NOW + 250);
    expect(await turnAccountIn(subject())).toMatchObject({ isActive: true, activeCount: 1 });
    await activity(owner, false, NOW + 300);
    await activity(owner, false, NOW + 900);
    expect(await turnAccountIn(subject())).toMatchObject({ isActive: false, activeCount: 0, used: { activeMs: 300 } });
  });

  test("due timers are returned oldest first, up to a limit, over all tenants", async () => {
    const dues = [30, 10, 20];
    for (const [index, due] of dues.entries()) {
      await openAgent(subject(), { tenant: `tenant-${index}`, turnBudget: { deadline: NOW + due } });
    }
    expect((await subject().dueTimers(NOW + 23, 10)).map((timer) => timer.dueAt)).toEqual([NOW + 8, NOW + 16]);
    expect(await subject().dueTimers(NOW + 99, 1)).toMatchObject([{ tenant: "tenant-1", dueAt: NOW + 8 }]);
    expect(await subject().nextTimerAt()).toBe(NOW + 8);
  });

  test("a commit that is rolled back sets and clears no timer", async () => {
    const owner = await openAgent(subject(), { turnBudget: { deadline: NOW + 500, maxSeconds: 10 } });
    const lost = { agentId: "nobody", item: { kind: "budget.freed", key: "k", at: NOW } } as const;
    await expect(
      owner.commit({
        entries: [note("lost")],
        moves: [{ type: "activity", accountId: turnAccount, isActive: true }],
        clearedTimers: [`deadlineAt:${turnAccount}`],
        posts: [lost],
      }),
    ).rejects.toThrow(/nobody/);
    expect((await subject().dueTimers(far, 10)).map((timer) => timer.id)).toEqual([`deadlineAt:${turnAccount}`]);
    expect(await subject().nextTimerAt()).toBe(NOW + 400);
  });
}
