import { describe, expect, test } from "vitest";
import type { Stores } from "../../src/stores/index.ts";
import { note } from "./entry-fixtures.ts";
import { NOW, ROOT, TENANT, TURN } from "./names.ts";
import { CALL, callSettled, ended, openTurn, withQueued } from "./queued-fixtures.ts";
import { elsewhere, here, identityOf, agentKey, LEASE_MS, Owner, openAgent, ready } from "./stores-fixtures.ts";
import { openChild, spawning } from "./tree-fixtures.ts";

const LATE = NOW + LEASE_MS + 1;
const another = { ...elsewhere, processId: "another" };

/** Ids of the agents that some process has to activate, as seen by another, living process. */
export async function unattendedIn(stores: Stores, steady: number = NOW, limit?: number): Promise<string[]> {
  await stores.registerProcess(another, NOW);
  await stores.heartbeat(another.processId, steady);
  const found: string[] = [];
  for (let after: string | undefined; ; ) {
    const query = { processId: another.processId, leaseMs: LEASE_MS, limit, after };
    const keys = await stores.unattended(TENANT, query, steady);
    for (const key of keys) found.push(key.agentId);
    after = keys.at(-1)?.agentId;
    if (after === undefined || keys.length < (limit ?? 100)) return found.sort();
  }
}

const turn = { input: "go", actorId: null, limits: null, ifBusy: "queue" } as const;

export function unattendedContract(subject: () => Stores): void {
  describe("no agent is unattended", () => {
    test("if a living process holds it, or there is nothing to do", async () => {
      await openTurn(subject());
      await openAgent(subject(), { agentId: "idle" });
      await subject().createAgent(identityOf("new"), null);
      expect(await unattendedIn(subject())).toEqual([]);
      await subject().heartbeat(here.processId, LATE);
      expect(await unattendedIn(subject(), LATE)).toEqual([]);
      // After its process died, the idle agent still has no work.
      expect(await unattendedIn(subject(), LATE + LATE - NOW)).toEqual([ROOT]);
    });

    test("for the process that holds it, even if that process's heartbeat is late", async () => {
      await openTurn(subject());
      const query = { processId: here.processId, leaseMs: LEASE_MS };
      expect(await subject().unattended(TENANT, query, LATE)).toEqual([]);
    });

    test("with a parked turn, until an item is posted", async () => {
      const owner = await withQueued(subject());
      expect(await subject().release(agentKey(), owner.epoch, { as: "parked" })).toBe(true);
      expect(await unattendedIn(subject(), LATE)).toEqual([]);
      await subject().postCallEnd(agentKey(), ended());
      expect(await unattendedIn(subject(), LATE)).toEqual([ROOT]);
      const next = await new Owner(subject(), agentKey()).acquire(elsewhere, LATE);
      await subject().heartbeat(elsewhere.processId, LATE);
      expect(await unattendedIn(subject(), LATE)).toEqual([]);
      // It dies before it has acknowledged anything.
      expect(await unattendedIn(subject(), LATE + LEASE_MS + 1)).toEqual([ROOT]);
      expect(next.epoch).toBe(owner.epoch + 1);
    });

    test("if it is shut down, or was never started", async () => {
      const owner = await openTurn(subject());
      await owner.commit({ entries: [note("sleeps")], owned: { ...ready, status: "shutdown" } });
      await subject().release(agentKey(), owner.epoch, { as: "leaving" });
      await subject().createAgent(identityOf("new"), null);
      await subject().pause(agentKey("new"), "ann", NOW);
      expect(await subject().inbox(agentKey("new"))).toHaveLength(1);
      expect(await unattendedIn(subject())).toEqual([]);
    });

    test("with turns queued behind a parked one", async () => {
      const owner = await withQueued(subject());
      const queued = await subject().openTurn(agentKey(), turn, NOW);
      if (queued.type !== "queued") throw new Error(`the turn was ${queued.type}`);
      const { turnId } = queued;
      await subject().abort(agentKey(), { turnId, by: "ann", reason: "no", stopReason: "user_requested" }, NOW);
      expect(await subject().release(agentKey(), owner.epoch)).toBe(false);
      expect(await subject().release(agentKey(), owner.epoch, { as: "parked" })).toBe(true);
      expect(await unattendedIn(subject())).toEqual([]);
      const next = await new Owner(subject(), agentKey()).acquire(elsewhere);
      await next.commit({ entries: [note("ends")], closedTurnId: TURN });
      await subject().release(agentKey(), next.epoch, { as: "leaving" });
      expect(await unattendedIn(subject())).toEqual([ROOT]);
    });

    test("with a turn that a pause holds, until the pause is over", async () => {
      const owner = await openAgent(subject());
      await subject().pause(agentKey(), "ann", NOW);
      const acknowledged = (await subject().inbox(agentKey())).map(({ key }) => key);
      await owner.commit({ entries: [note("holds")], owned: { ...ready, status: "paused" }, acknowledged });
      await subject().openTurn(agentKey(), turn, NOW);
      await subject().release(agentKey(), owner.epoch, { as: "leaving" });
      expect(await unattendedIn(subject())).toEqual([]);
      await subject().resume(agentKey(), "ann", NOW);
      expect(await unattendedIn(subject())).toEqual([ROOT]);
    });
  });

  describe("an agent is unattended", () => {
    test("with an open turn that was released", async () => {
      const owner = await openTurn(subject());
      await subject().release(agentKey(), owner.epoch, { as: "leaving" });
      expect(await unattendedIn(subject())).toEqual([ROOT]);
      await new Owner(subject(), agentKey()).acquire(elsewhere);
      expect(await unattendedIn(subject())).toEqual([]);
    });

    test("if a dead process holds it with an open turn or an item", async () => {
      await openTurn(subject());
      await openAgent(subject(), { agentId: "posted" });
      await openAgent(subject(), { agentId: "idle" });
      await subject().openTurn(agentKey("posted"), turn, NOW);
      expect(await unattendedIn(subject(), NOW + LEASE_MS)).toEqual([]);
      expect(await unattendedIn(subject(), LATE)).toEqual([ROOT, "posted"]);
      await subject().openTurn(agentKey("idle"), turn, LATE);
      expect(await unattendedIn(subject(), LATE)).toEqual([ROOT, "idle", "posted"]);
    });

    test("if its process was absent so long that it was removed", async () => {
      await openTurn(subject());
      const later = NOW + 48 * 60 * 60 * 1000;
      await subject().registerProcess(elsewhere, later);
      expect(await unattendedIn(subject(), later)).toEqual([ROOT]);
    });

    test("if its process seemed dead, came back, began a turn, and died", async () => {
      const owner = await openAgent(subject());
      expect(await unattendedIn(subject(), LATE)).toEqual([]);
      await subject().heartbeat(here.processId, LATE);
      await subject().openTurn(agentKey(), turn, LATE);
      const acknowledged = (await subject().inbox(agentKey())).map(({ key }) => key);
      await owner.commit({ entries: [note("begins")], acknowledged }, LATE);
      expect(await unattendedIn(subject(), LATE)).toEqual([]);
      expect(await unattendedIn(subject(), LATE + LEASE_MS + 1)).toEqual([ROOT]);
    });

    test("if it was spawned and not activated, or is a parent with a child's end in its inbox", async () => {
      const owner = await openTurn(subject());
      const { entry, order } = spawning(owner, "kid");
      await owner.commit({ entries: [entry], spawns: [order] });
      expect(await unattendedIn(subject())).toEqual([`${ROOT}~kid`]);
      await subject().release(agentKey(), owner.epoch, { as: "parked" });
      const kid = await new Owner(subject(), agentKey(`${ROOT}~kid`)).acquire();
      const item = { kind: "budget.freed", key: "freed", at: NOW } as const;
      await kid.commit({
        entries: [note("ends")],
        owned: ready,
        acknowledged: [order.turn.key],
        closedTurnId: order.turn.turnId,
        posts: [{ agentId: ROOT, item }],
      });
      expect(await subject().release(kid.key, kid.epoch)).toBe(true);
      expect(await unattendedIn(subject())).toEqual([ROOT]);
    });

    test("among many, page by page, and not in another tenant", async () => {
      const ids = Array.from({ length: 23 }, (_, index) => `a${String(index).padStart(2, "0")}`);
      for (const agentId of ids) {
        const owner = await openAgent(subject(), { agentId });
        await subject().openTurn(owner.key, turn, NOW);
        if (agentId < "a10") await subject().release(owner.key, owner.epoch, { as: "leaving" });
      }
      await openAgent(subject(), { agentId: "theirs", tenant: "other" });
      await subject().openTurn(agentKey("theirs", "other"), turn, NOW);
      const kid = await openChild(await openTurn(subject()), "kid");
      await kid.commit({ entries: [note("works")] });
      expect(await unattendedIn(subject(), LATE, 4)).toEqual([...ids, ROOT, `${ROOT}~kid`]);
      expect(await unattendedIn(subject(), LATE)).toEqual([...ids, ROOT, `${ROOT}~kid`]);
      expect(await subject().unattended(TENANT, { processId: "x", leaseMs: LEASE_MS, limit: 0 }, LATE)).toEqual([]);
    });
  });

  describe("a lease", () => {
    test("is refused to a process that does not know the definition; nothing changes and no owner is fenced off", async () => {
      const owner = await openTurn(subject());
      await subject().registerProcess(elsewhere, LATE);
      const attempt = (steady: number, name: string) =>
        subject().acquire(agentKey(), elsewhere.processId, LEASE_MS, steady, (known) => known === name);
      expect(await attempt(NOW, "porter")).toMatchObject({ type: "held" });
      expect(await attempt(LATE, "porter")).toEqual({ type: "unknown", definition: "clerk" });
      await owner.commit({ entries: [note("goes on")] });
      expect(await attempt(LATE, "clerk")).toMatchObject({ type: "acquired", epoch: owner.epoch + 1 });
    });

    test("released as parked keeps the turn's working time running; released as leaving does not", async () => {
      const owner = await openTurn(subject(), { turnBudget: { maxSeconds: 100 } });
      const accountId = `turn:${TURN}`;
      const moves = [{ type: "activity", accountId, isActive: true }] as const;
      await owner.commit({ entries: [note("works")], moves });
      const activeSince = async () => (await subject().account(TENANT, accountId))?.activeSince;
      await subject().release(agentKey(), owner.epoch, { as: "parked", steady: NOW + 5 });
      await owner.acquire(here, NOW + 1000);
      expect(await activeSince()).toBe(NOW);
      // The agent works again and is then released.
      await owner.commit({ entries: [note("goes on")] }, NOW + 1000);
      await subject().release(agentKey(), owner.epoch, { as: "leaving", steady: NOW + 1500 });
      await owner.acquire(elsewhere, NOW + 9000);
      const { used } = (await subject().account(TENANT, accountId)) ?? {};
      expect((await activeSince()) ?? 0).toBeGreaterThan(NOW);
      expect(NOW + 9000 - ((await activeSince()) ?? 0) + (used?.activeMs ?? 0)).toBe(1500);
    });

    test("cannot be released as parked while items are posted, except for queued turns", async () => {
      const owner = await withQueued(subject());
      await subject().postCallEnd(agentKey(), ended());
      expect(await subject().release(agentKey(), owner.epoch, { as: "parked" })).toBe(false);
      expect(await subject().holder(agentKey())).toMatchObject({ epoch: owner.epoch });
      await owner.commit({ entries: [callSettled], acknowledged: [`ended:${CALL}#1`] });
      expect(await subject().release(agentKey(), owner.epoch, { as: "parked" })).toBe(true);
    });
  });
}
