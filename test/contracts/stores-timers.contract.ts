import { expect, test } from "vitest";
import type { Stores } from "../../src/stores/index.ts";
import { note } from "./entry-fixtures.ts";
import { NOW, ROOT, TENANT, TURN } from "./names.ts";
import { accountOf, identityOf, type Owner, openAgent } from "./stores-fixtures.ts";

const turnAccount = `turn:${TURN}`;
const far = Number.MAX_SAFE_INTEGER;

async function activity(owner: Owner, delta: 1 | -1, now: number) {
  return owner.commit({ entries: [note("work")], moves: [{ type: "activity", accountId: turnAccount, delta }] }, now);
}

export function timersContract(subject: () => Stores): void {
  test("an account that is opened with a deadline sets its alarm; clearing it is a commit's business", async () => {
    const owner = await openAgent(subject(), { turnBudget: { deadline: NOW + 500 } });
    const timer = {
      tenant: TENANT,
      agentId: ROOT,
      id: `deadlineAt:${turnAccount}`,
      dueAt: NOW + 500,
      accountId: turnAccount,
      limit: "deadlineAt",
    };
    expect(await subject().nextTimerAt()).toBe(NOW + 500);
    expect(await subject().dueTimers(NOW + 499, 10)).toEqual([]);
    expect(await subject().dueTimers(NOW + 500, 10)).toEqual([timer]);
    await owner.commit({ entries: [note("ended")], clearedTimers: [timer.id, "unknown"] });
    expect(await subject().nextTimerAt()).toBeUndefined();
    expect(await subject().dueTimers(far, 10)).toEqual([]);
  });

  test("an agent that is made with a deadline has its alarm too", async () => {
    const account = accountOf(`agent:${ROOT}`, { deadline: NOW + 9 });
    await subject().createAgent(identityOf(ROOT, { accountId: account.id }), account);
    expect(await subject().dueTimers(NOW + 9, 10)).toMatchObject([{ agentId: ROOT, id: `deadlineAt:${account.id}` }]);
  });

  test("the alarm of active time is set when work begins and cleared when the last work ends", async () => {
    const owner = await openAgent(subject(), { turnBudget: { maxSeconds: 10 } });
    const timer = { id: `maxActiveMs:${turnAccount}`, dueAt: NOW + 10_000 };
    expect((await activity(owner, 1, NOW)).timers).toMatchObject([timer]);
    expect((await activity(owner, 1, NOW + 100)).timers).toEqual([]);
    await activity(owner, -1, NOW + 200);
    expect(await subject().dueTimers(far, 10)).toMatchObject([timer]);
    await activity(owner, -1, NOW + 3000);
    expect(await subject().nextTimerAt()).toBeUndefined();
    const accounts = await subject().accounts(TENANT, ROOT);
    const turn = accounts.find((account) => account.id === turnAccount);
    expect(turn).toMatchObject({ used: { activeMs: 3000 }, activeCount: 0, activeSince: null });
    // What was used is not given back: seven seconds are left.
    await activity(owner, 1, NOW + 60_000);
    expect(await subject().nextTimerAt()).toBe(NOW + 67_000);
  });

  test("due alarms come oldest first, at most so many, over all tenants", async () => {
    const dues = [30, 10, 20];
    for (const [index, due] of dues.entries()) {
      await openAgent(subject(), { tenant: `tenant-${index}`, turnBudget: { deadline: NOW + due } });
    }
    expect((await subject().dueTimers(NOW + 25, 10)).map((timer) => timer.dueAt)).toEqual([NOW + 10, NOW + 20]);
    expect(await subject().dueTimers(NOW + 99, 1)).toMatchObject([{ tenant: "tenant-1", dueAt: NOW + 10 }]);
    expect(await subject().nextTimerAt()).toBe(NOW + 10);
  });

  test("a commit that is undone sets and clears no alarm", async () => {
    const owner = await openAgent(subject(), { turnBudget: { deadline: NOW + 500, maxSeconds: 10 } });
    const lost = { agentId: "nobody", item: { kind: "budget.freed", key: "k", at: NOW } } as const;
    await expect(
      owner.commit({
        entries: [note("lost")],
        moves: [{ type: "activity", accountId: turnAccount, delta: 1 }],
        clearedTimers: [`deadlineAt:${turnAccount}`],
        posts: [lost],
      }),
    ).rejects.toThrow(/nobody/);
    expect((await subject().dueTimers(far, 10)).map((timer) => timer.limit)).toEqual(["deadlineAt"]);
    expect(await subject().nextTimerAt()).toBe(NOW + 500);
  });
}
