import { expect, test } from "vitest";
import { memoryStores, type Stores } from "../../src/stores/index.ts";
import { reservationIn, settled } from "./entry-fixtures.ts";
import { call, only, openLine, waiting } from "./line-fixtures.ts";
import { NOW, ROOT, TENANT } from "./names.ts";
import { here, agentKey, Owner } from "./stores-fixtures.ts";
import { exported } from "./team-fixtures.ts";

const far = Number.MAX_SAFE_INTEGER;
/** The time from which the claim has expired. */
const late = NOW + 10_001;

async function claimAlarms(stores: Stores, now = far) {
  return (await stores.dueTimers(now, 10)).flatMap((timer) => (timer.kind === "claim" ? timer : []));
}

/** Fires the due claim timers. Returns the ids of the notified agents. */
async function hear(stores: Stores, now: number): Promise<string[]> {
  const posted: string[] = [];
  for (const timer of await claimAlarms(stores, now)) posted.push(...(await stores.fireTimer(timer, now)).posted);
  return posted;
}

export function claimsContract(subject: () => Stores): void {
  test("an agent that was notified of free budget and never asks loses its turn to the next, without any other event", async () => {
    const { owner, children, ids, taken } = await openLine(subject(), ["a", "b", "c"], 900);
    expect(await claimAlarms(subject())).toEqual([]);
    const { timers, posted } = await owner.commit(settled(taken, { tokens: 0 }));
    expect(posted).toEqual([ids[0]]);
    expect(timers).toMatchObject([{ kind: "claim", dueAt: late, accountId: `agent:${ROOT}` }]);
    expect(await subject().nextTimerAt()).toBe(late);
    expect(await hear(subject(), late - 1)).toEqual([]);
    expect(await hear(subject(), late)).toEqual([ids[1]]);
    expect(await subject().inbox(agentKey(ids[1]))).toMatchObject([{ kind: "budget.freed" }]);
    expect(await waiting(subject())).toEqual(ids.slice(1));
    // The claim passes on to each agent in the queue.
    expect(await hear(subject(), late + 10_001)).toEqual([ids[2]]);
    expect(await hear(subject(), late + 20_002)).toEqual([]);
    expect(await waiting(subject())).toEqual([]);
    expect(await subject().nextTimerAt()).toBeUndefined();
    // The first agent was only slow: it counts as a new one and gets the free budget.
    const a = only(children, 0);
    expect((await a.commit({ entries: [call(a, 900)] }, late + 20_003)).entries).toMatchObject([
      { type: "model.requested" },
    ]);
  });

  test("an agent that was notified later has its full time too; a timer that fires twice skips no agent", async () => {
    const { owner, children, ids, taken } = await openLine(subject(), ["a", "b", "c"], 500);
    await owner.commit(settled(taken, { tokens: 200 }));
    const a = only(children, 0);
    const granted = reservationIn(await a.commit({ entries: [call(a, 500)] }, NOW + 3_000));
    const { posted } = await a.commit(settled(granted, { tokens: 0 }), NOW + 4_000);
    expect(posted).toEqual([ids[1]]);
    const [alarm] = await claimAlarms(subject());
    expect(alarm?.dueAt).toBe(late);
    expect(await hear(subject(), late)).toEqual([]);
    expect(await claimAlarms(subject())).toMatchObject([{ dueAt: NOW + 14_001 }]);
    expect(alarm && (await subject().fireTimer(alarm, late))).toMatchObject({ posted: [] });
    expect(await hear(subject(), NOW + 14_001)).toEqual([ids[2]]);
  });

  test("no timer is left once all agents have asked", async () => {
    const { owner, children, taken } = await openLine(subject(), ["a", "b"], 500);
    await owner.commit(settled(taken, { tokens: 0 }));
    for (const child of children) await child.commit({ entries: [call(child, 500)] });
    expect(await waiting(subject())).toEqual([]);
    expect(await claimAlarms(subject())).toEqual([]);
  });

  test("a claim expires by the steady time: setting the wall clock does not extend it", async () => {
    const { owner, ids, taken } = await openLine(subject(), ["a", "b"], 900);
    const hour = 3_600_000;
    await subject().commit([owner.batch(settled(taken, { tokens: 0 }))], NOW + hour, NOW);
    expect(await subject().dueTimers(NOW, 10, late - 1)).toEqual([]);
    const [alarm] = await claimAlarms(subject());
    expect(await subject().dueTimers(NOW, 10, late)).toEqual([alarm]);
    expect(alarm && (await subject().fireTimer(alarm, NOW, late)).posted).toEqual([ids[1]]);
  });

  test("a pause that frees another agent's budget also sets the timer", async () => {
    const { owner, ids, taken } = await openLine(subject(), ["a", "b", "c"], 900);
    await owner.commit(settled(taken, { tokens: 0 }));
    await subject().pause(agentKey(ids[0]), "ann", NOW + 5_000, { steady: NOW + 5_000 });
    expect(await hear(subject(), late)).toEqual([]);
    expect(await hear(subject(), NOW + 15_001)).toEqual([ids[2]]);
  });

  test("the queue moves with its tree to another store and continues there", async () => {
    const source = memoryStores();
    const { owner, ids, taken } = await openLine(source, ["a", "b"], 900);
    const tree = JSON.parse(JSON.stringify(await exported(source)));
    await subject().registerProcess(here, NOW);
    await subject().importTree(tree, here.processId);
    expect(await subject().waiters(TENANT, ROOT)).toEqual(await source.waiters(TENANT, ROOT));
    // The import replaced the records of that id, including the queue.
    await subject().importTree(tree, here.processId);
    expect(await waiting(subject())).toEqual(ids);
    const there = Object.assign(new Owner(subject(), agentKey()), { epoch: owner.epoch, seq: owner.seq });
    const batch = { ...there.batch(settled(taken, { tokens: 0 })), id: "there" };
    expect(there.moved((await subject().commit([batch], NOW))[0]).posted).toEqual([ids[0]]);
    expect(await hear(subject(), late)).toEqual([ids[1]]);
  });

  test("a commit that is rolled back leaves the queue unchanged", async () => {
    const { owner, ids, taken } = await openLine(subject(), ["a", "b"], 900);
    const before = await subject().waiters(TENANT, ROOT);
    const lost = { agentId: "nobody", item: { kind: "budget.freed", key: "k", at: NOW } } as const;
    const parts = settled(taken, { tokens: 0 });
    await expect(owner.commit({ ...parts, posts: [lost] })).rejects.toThrow(/nobody/);
    expect(await subject().waiters(TENANT, ROOT)).toEqual(before);
    expect(await claimAlarms(subject())).toEqual([]);
    expect((await owner.commit(parts)).posted).toEqual([ids[0]]);
  });

  test("a timer of an agent or account that does not exist changes nothing", async () => {
    await openLine(subject(), ["a"]);
    const alarm = {
      kind: "claim",
      tenant: TENANT,
      agentId: ROOT,
      id: "claim:x",
      dueAt: NOW,
      accountId: `turn:${ROOT}#9`,
    } as const;
    expect(await subject().fireTimer(alarm, NOW)).toEqual({ posted: [], timers: [] });
    const elsewhere = { ...alarm, agentId: "nobody", accountId: "agent:nobody" };
    expect(await subject().fireTimer(elsewhere, NOW)).toEqual({ posted: [], timers: [] });
  });
}
