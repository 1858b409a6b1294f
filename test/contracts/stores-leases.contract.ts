import { spawnSync } from "node:child_process";
import { expect, test } from "vitest";
import type { Stores } from "../../src/stores/index.ts";
import { note } from "./entry-fixtures.ts";
import { NOW, ROOT } from "./names.ts";
import { elsewhere, here, identityOf, agentKey, LEASE_MS, Owner, openAgent, ready } from "./stores-fixtures.ts";

/** The id of a process that has ended. */
function endedPid(): number {
  return spawnSync(process.execPath, ["-e", ""]).pid;
}

export function leasesContract(subject: () => Stores): void {
  test("every acquisition has a new epoch, also in the same process, and returns the current seq (invariant 4)", async () => {
    const owner = await openAgent(subject());
    await owner.commit({ entries: [note("one"), note("two")] });
    const first = owner.epoch;
    expect(await subject().acquire(agentKey(), here.processId, LEASE_MS, NOW)).toMatchObject({
      type: "acquired",
      epoch: first + 1,
      seq: 3,
      at: NOW,
      record: { agentId: ROOT },
    });
    await subject().release(agentKey(), first + 1);
    expect(await subject().acquire(agentKey(), here.processId, LEASE_MS, NOW)).toMatchObject({ epoch: first + 2 });
  });

  test("a fresh agent starts at seq 0, an unknown one is not found", async () => {
    await subject().createAgent(identityOf(), null);
    await subject().registerProcess(here, NOW);
    expect(await subject().acquire(agentKey(), here.processId, LEASE_MS, NOW)).toMatchObject({
      epoch: 1,
      seq: 0,
      at: 0,
    });
    expect(await subject().acquire(agentKey("nobody"), here.processId, LEASE_MS, NOW)).toEqual({ type: "notFound" });
  });

  test("an agent held by a living process is not given to another until the holder's heartbeat is too old", async () => {
    const owner = await openAgent(subject());
    await subject().registerProcess(elsewhere, NOW);
    const attempt = (now: number) => subject().acquire(agentKey(), elsewhere.processId, LEASE_MS, now);
    expect(await attempt(NOW + LEASE_MS)).toEqual({ type: "held", by: here, epoch: owner.epoch });
    await subject().heartbeat(here.processId, NOW + LEASE_MS);
    expect(await attempt(NOW + 2 * LEASE_MS)).toMatchObject({ type: "held" });
    expect(await attempt(NOW + 2 * LEASE_MS + 1)).toMatchObject({ type: "acquired", epoch: owner.epoch + 1 });
    expect(await subject().commit([owner.batch({ entries: [note("late")] })], NOW)).toMatchObject([{ type: "stale" }]);
  });

  test("registered processes are listed with their last heartbeats", async () => {
    await subject().registerProcess(here, NOW);
    await subject().registerProcess(elsewhere, NOW);
    await subject().heartbeat(elsewhere.processId, NOW + 7);
    const rows = await subject().processes();
    expect(rows.toSorted((one, other) => one.heartbeatAt - other.heartbeatAt)).toMatchObject([
      { ...here, heartbeatAt: NOW },
      { ...elsewhere, heartbeatAt: NOW + 7 },
    ]);
  });

  test("a process that wants the lease of an agent at rest posts items to its owner, and wakes no other process", async () => {
    await subject().wantLease(agentKey("nobody"), NOW);
    const owner = await openAgent(subject());
    await Promise.all([subject().wantLease(agentKey(), NOW + 1), subject().wantLease(agentKey(), NOW + 1)]);
    const asked = await subject().inbox(agentKey());
    expect(asked).toMatchObject([
      { kind: "lease.wanted", at: NOW + 1 },
      { kind: "lease.wanted", at: NOW + 1 },
    ]);
    expect(new Set(asked.map(({ key }) => key)).size).toBe(2);
    expect(await subject().release(agentKey(), owner.epoch)).toBe(false);
    await owner.commit({ acknowledged: asked.map(({ key }) => key) });
    expect(await subject().release(agentKey(), owner.epoch)).toBe(true);
    await subject().wantLease(agentKey(), NOW + 2);
    expect(await subject().inbox(agentKey())).toEqual([]);
  });

  test("an agent in a turn or shut down is not asked for its lease", async () => {
    const owner = await openAgent(subject());
    await subject().openTurn(agentKey(), { input: "go", actorId: null, limits: null, ifBusy: "refuse" }, NOW);
    const before = await subject().inbox(agentKey());
    await subject().wantLease(agentKey(), NOW + 1);
    expect(await subject().inbox(agentKey())).toEqual(before);
    await owner.acquire(here);
    const down = await openAgent(subject(), { agentId: "down" });
    await down.commit({ entries: [note("down")], owned: { ...ready, status: "shutdown" } });
    await subject().wantLease(agentKey("down"), NOW + 1);
    expect(await subject().inbox(agentKey("down"))).toEqual([]);
  });

  test("a process without a heartbeat for a day is removed; its next heartbeat returns false and its agents are free", async () => {
    const owner = await openAgent(subject());
    const day = 24 * 60 * 60 * 1000;
    expect(await subject().heartbeat(here.processId, NOW + 1)).toBe(true);
    expect(await subject().heartbeat("nobody", NOW)).toBe(false);
    await subject().registerProcess(elsewhere, NOW + 1 + day);
    expect(await subject().holder(agentKey())).toMatchObject({ process: { processId: here.processId } });
    await subject().registerProcess({ ...elsewhere, processId: "later" }, NOW + 2 + day);
    expect(await subject().heartbeat(here.processId, NOW + 3 + day)).toBe(false);
    expect(await subject().holder(agentKey())).toBeUndefined();
    const taken = await subject().acquire(agentKey(), elsewhere.processId, LEASE_MS, NOW + 3 + day);
    expect(taken).toMatchObject({ type: "acquired", epoch: owner.epoch + 1 });
    // It registers again, with the same time as all others.
    expect(await subject().registerProcess(here, NOW + 4 + day, 4)).toBe(NOW + day);
  });

  test("an agent of a process of the same boot that has ended can be acquired immediately", async () => {
    await subject().createAgent(identityOf(), null);
    const dead = { processId: "dead", pid: endedPid(), bootId: here.bootId };
    await new Owner(subject(), agentKey()).acquire(dead);
    await subject().registerProcess(here, NOW);
    expect(await subject().acquire(agentKey(), here.processId, LEASE_MS, NOW)).toMatchObject({
      type: "acquired",
      epoch: 2,
    });
  });

  test("for a process of another boot only the heartbeat counts, not its process id", async () => {
    await subject().createAgent(identityOf(), null);
    await new Owner(subject(), agentKey()).acquire({ ...elsewhere, pid: endedPid() });
    await subject().registerProcess(here, NOW);
    expect(await subject().acquire(agentKey(), here.processId, LEASE_MS, NOW)).toMatchObject({ type: "held" });
  });

  test("a lease can be released only with its epoch, and not while the inbox has items", async () => {
    const owner = await openAgent(subject());
    expect(await subject().release(agentKey(), owner.epoch - 1)).toBe(false);
    await subject().pause(agentKey(), "ann", NOW);
    expect(await subject().release(agentKey(), owner.epoch)).toBe(false);
    const acknowledged = (await subject().inbox(agentKey())).map((item) => item.key);
    await owner.commit({ entries: [note("took it")], acknowledged });
    expect(await subject().release(agentKey(), owner.epoch)).toBe(true);
    expect(await subject().release(agentKey(), owner.epoch)).toBe(false);
    expect(await subject().release(agentKey("nobody"), 1)).toBe(false);
  });

  test("an owner that leaves releases its lease despite unread items, and the next owner finds them", async () => {
    const owner = await openAgent(subject());
    await subject().pause(agentKey(), "ann", NOW);
    expect(await subject().release(agentKey(), owner.epoch - 1, { as: "leaving" })).toBe(false);
    expect(await subject().release(agentKey(), owner.epoch, { as: "rest" })).toBe(false);
    expect(await subject().holder(agentKey())).toMatchObject({ epoch: owner.epoch });
    expect(await subject().release(agentKey(), owner.epoch, { as: "leaving" })).toBe(true);
    expect(await subject().holder(agentKey())).toBeUndefined();
    expect(await subject().release(agentKey(), owner.epoch, { as: "leaving" })).toBe(false);
    expect(await subject().commit([owner.batch({ entries: [note("late")] })], NOW)).toMatchObject([{ type: "stale" }]);
    const next = await new Owner(subject(), agentKey()).acquire(elsewhere);
    expect(next.epoch).toBe(owner.epoch + 1);
    expect(await subject().inbox(agentKey())).toMatchObject([{ kind: "pause" }]);
    await next.commit({ entries: [note("goes on")] });
  });

  test("a batch can also release the lease, despite unread items, and only if it is applied", async () => {
    const owner = await openAgent(subject());
    const stale = { ...owner.batch({ entries: [note("late")], leaves: true }), epoch: owner.epoch - 1 };
    expect(await subject().commit([stale], NOW)).toMatchObject([{ type: "stale" }]);
    expect(await subject().holder(agentKey())).toMatchObject({ epoch: owner.epoch });
    await subject().pause(agentKey(), "ann", NOW);
    const last = owner.batch({ entries: [note("the last one")], leaves: true });
    const [first] = await subject().commit([last], NOW);
    expect(first).toMatchObject({ type: "committed", entries: [{ message: "the last one" }] });
    expect(await subject().holder(agentKey())).toBeUndefined();
    // When it is sent again it is recognized; later batches are stale.
    expect(await subject().commit([last], NOW)).toMatchObject([{ type: "committed", entries: last.entries }]);
    owner.moved(first);
    expect(await subject().commit([owner.batch({ entries: [note("late")] })], NOW)).toMatchObject([{ type: "stale" }]);
    expect(await subject().release(agentKey(), owner.epoch, { as: "leaving" })).toBe(false);
    const next = await new Owner(subject(), agentKey()).acquire(elsewhere);
    expect(next).toMatchObject({ epoch: owner.epoch + 1, seq: owner.seq });
    expect(await subject().inbox(agentKey())).toMatchObject([{ kind: "pause" }]);
    await next.commit({ entries: [note("goes on")] });
  });

  test("the holder of an agent can be read", async () => {
    expect(await subject().holder(agentKey())).toBeUndefined();
    const owner = await openAgent(subject());
    expect(await subject().holder(agentKey())).toEqual({ process: here, epoch: owner.epoch });
    await subject().release(agentKey(), owner.epoch);
    expect(await subject().holder(agentKey())).toBeUndefined();
  });
}
