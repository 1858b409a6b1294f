import { describe, expect, test } from "vitest";
import { JOB_LOOK_MS, type JobAlarm, type Stores } from "../../src/stores/index.ts";
import { note, toolStarted } from "./entry-fixtures.ts";
import { NOW, ROOT, TENANT, TURN } from "./names.ts";
import { CALL, callRetrying, callSettled, ended, openTurn, queuedIn, withQueued } from "./queued-fixtures.ts";
import { elsewhere, here, keyOf, LEASE_MS, Owner, ready } from "./stores-fixtures.ts";
import { openChild } from "./tree-fixtures.ts";

const far = Number.MAX_SAFE_INTEGER;
const queued = { turnId: TURN, step: 1, callId: CALL, attempt: 1, queue: "browser", isRepeatable: false, addedAt: NOW };
const alarm: JobAlarm = {
  kind: "job",
  tenant: TENANT,
  agentId: ROOT,
  id: `job:${CALL}#1`,
  dueAt: NOW + JOB_LOOK_MS,
  turnId: TURN,
  callId: CALL,
  attempt: 1,
  queue: "browser",
};

/** Claims the call for a process, and gives what type of answer it gets. */
async function claimed(stores: Stores, processId: string, { steady = NOW, attempt = 1, key = keyOf() } = {}) {
  return await stores.claimCall(key, { callId: CALL, attempt, processId, leaseMs: LEASE_MS }, steady);
}

export function queuedContract(subject: () => Stores): void {
  describe("the record", () => {
    test("names a call that was granted with a queue, and an alarm looks after its job", async () => {
      const owner = await openTurn(subject());
      const start = toolStarted({ queue: "browser", priority: 3, effect: "keyed" });
      expect(await owner.commit({ entries: [start] })).toMatchObject({ timers: [alarm] });
      const call = { ...queued, priority: 3, isRepeatable: true, claimedBy: null, isEnded: false };
      expect(await queuedIn(subject())).toEqual({ [`${CALL}#1`]: call });
      expect(await subject().dueTimers(far, 10)).toEqual([alarm]);
    });

    test("names none that was refused, or that its owner runs", async () => {
      const owner = await openTurn(subject(), { turnBudget: { maxToolCalls: 1 } });
      await owner.commit({ entries: [toolStarted()] });
      const outcome = await owner.commit({ entries: [toolStarted({ queue: "browser" })] });
      expect(outcome.entries).toMatchObject([{ type: "intent.refused", reason: "budget" }]);
      expect((await subject().readAgent(keyOf()))?.queued).toBeUndefined();
      expect(await subject().dueTimers(far, 10)).toEqual([]);
    });

    test("forgets a call that is settled, whether or not it was claimed", async () => {
      const owner = await withQueued(subject());
      await claimed(subject(), here.processId);
      await owner.commit({ entries: [callSettled] });
      expect((await subject().readAgent(keyOf()))?.queued).toBeUndefined();
      expect(await subject().dueTimers(far, 10)).toEqual([]);
    });

    test("names the next attempt in the place of the one that failed", async () => {
      const owner = await withQueued(subject(), { effect: "none" });
      await claimed(subject(), here.processId);
      const next = toolStarted({ queue: "browser", effect: "none", attempt: 2 });
      await owner.commit({ entries: [callRetrying, next] });
      expect(Object.values(await queuedIn(subject()))).toMatchObject([{ attempt: 2, claimedBy: null, isEnded: false }]);
      expect(await subject().dueTimers(far, 10)).toMatchObject([{ kind: "job", attempt: 2 }]);
    });

    test("forgets what a turn leaves open at its end, and keeps what is queued when the agent commits something else", async () => {
      const owner = await withQueued(subject());
      await owner.commit({ entries: [note("goes on")], owned: ready });
      expect(Object.keys(await queuedIn(subject()))).toEqual([`${CALL}#1`]);
      await owner.commit({ entries: [note("ends")], closedTurnId: TURN });
      expect(await queuedIn(subject())).toEqual({});
      expect(await subject().nextTimerAt()).toBeUndefined();
    });

    test("is taken out and put in with its tree, and so is a parked turn", async () => {
      const owner = await withQueued(subject());
      await claimed(subject(), elsewhere.processId);
      await subject().release(keyOf(), owner.epoch, { as: "parked" });
      const tree = await subject().exportTree(TENANT, ROOT);
      if (!tree) throw new Error("the tree is gone");
      await owner.acquire();
      await owner.commit({ entries: [callSettled] });
      await subject().importTree(JSON.parse(JSON.stringify(tree)), here.processId);
      expect(Object.values(await queuedIn(subject()))).toMatchObject([{ claimedBy: elsewhere.processId }]);
      expect(await subject().dueTimers(far, 10)).toEqual([alarm]);
      expect(await subject().exportTree(TENANT, ROOT)).toMatchObject({ agents: [{ isHeld: false, isParked: true }] });
    });
  });

  describe("claiming", () => {
    test("of many who want a call that may not be repeated, one gets it", async () => {
      await withQueued(subject());
      await subject().registerProcess(elsewhere, NOW);
      const outcomes = await Promise.all(
        Array.from({ length: 40 }, (_, index) => claimed(subject(), (index % 2 ? here : elsewhere).processId)),
      );
      const winners = outcomes.filter(({ type }) => type === "claimed");
      expect(winners).toHaveLength(1);
      const [call] = Object.values(await queuedIn(subject()));
      const by = call?.claimedBy === here.processId ? here : elsewhere;
      expect(winners).toMatchObject([{ record: { agentId: ROOT, queued: { [`${CALL}#1`]: call } } }]);
      const others = outcomes.filter(({ type }) => type !== "claimed");
      expect(others).toEqual(Array.from({ length: 39 }, () => ({ type: "taken", by, isAlive: true })));
    });

    test("a call whose process is dead, or forgotten, is not given again; whoever asks is told so", async () => {
      await withQueued(subject());
      await subject().registerProcess(elsewhere, NOW);
      await claimed(subject(), elsewhere.processId);
      const late = NOW + LEASE_MS + 1;
      expect(await claimed(subject(), here.processId, { steady: late })).toEqual({
        type: "taken",
        by: elsewhere,
        isAlive: false,
      });
      const day = 24 * 60 * 60 * 1000;
      await subject().registerProcess({ ...here, processId: "later" }, late + day);
      expect(await claimed(subject(), "later", { steady: late + day })).toMatchObject({
        type: "taken",
        by: { processId: elsewhere.processId },
        isAlive: false,
      });
    });

    test("one that may be repeated is given to whoever asks", async () => {
      await withQueued(subject(), { effect: "keyed" });
      expect(await claimed(subject(), here.processId)).toMatchObject({ type: "claimed" });
      expect(await claimed(subject(), elsewhere.processId)).toMatchObject({ type: "claimed" });
      expect(Object.values(await queuedIn(subject()))).toMatchObject([{ claimedBy: elsewhere.processId }]);
    });

    test("a pause, on the agent or above it, refuses it until it is over; an abort for ever", async () => {
      const root = await openTurn(subject());
      const kid = await openChild(root, "kid");
      const [key, turnId] = [kid.key, `${kid.key.agentId}#1`];
      const start = toolStarted({ queue: "browser", turnId, accountId: `turn:${turnId}` });
      await kid.commit({ entries: [start] });
      await subject().pause(keyOf(), "ann", NOW);
      expect(await claimed(subject(), here.processId, { key })).toEqual({ type: "refused", reason: "paused" });
      expect(Object.values(await queuedIn(subject(), key))).toMatchObject([{ claimedBy: null }]);
      await subject().resume(keyOf(), "ann", NOW);
      await subject().abort(keyOf(), { turnId: TURN, by: "ann", reason: "no", stopReason: "user_requested" }, NOW);
      expect(await claimed(subject(), here.processId, { key })).toEqual({ type: "refused", reason: "aborted" });
    });

    test("an agent that is shut down in the midst of its turn holds what it has open", async () => {
      const owner = await withQueued(subject());
      await owner.commit({ entries: [note("sleeps")], owned: { ...ready, status: "shutdown" } });
      expect(await claimed(subject(), here.processId)).toEqual({ type: "refused", reason: "paused" });
      await owner.commit({ entries: [note("wakes")], owned: { ...ready, status: "busy" } });
      expect(await claimed(subject(), here.processId)).toMatchObject({ type: "claimed" });
    });

    test("there is nothing to claim of an attempt that is over, never was, or belongs to nobody", async () => {
      const owner = await withQueued(subject());
      const over = { type: "over" };
      expect(await claimed(subject(), here.processId, { attempt: 2 })).toEqual(over);
      expect(await claimed(subject(), here.processId, { key: keyOf("nobody") })).toEqual(over);
      await subject().postCallEnd(keyOf(), ended());
      expect(await claimed(subject(), here.processId)).toEqual(over);
      await owner.commit({ entries: [callSettled] });
      expect(await claimed(subject(), here.processId)).toEqual(over);
    });
  });

  describe("the end of a call", () => {
    test("is posted once, whoever tells it first", async () => {
      await withQueued(subject());
      const told = await Promise.all(["a", "b", "c"].map((text) => subject().postCallEnd(keyOf(), ended(text))));
      expect(told.flatMap(({ posted }) => posted)).toEqual([ROOT]);
      const [item, ...others] = await subject().inbox(keyOf());
      expect(item).toMatchObject({
        kind: "call.ended",
        key: `ended:${CALL}#1`,
        callId: CALL,
        end: { type: "settled" },
      });
      expect(others).toEqual([]);
      expect(Object.values(await queuedIn(subject()))).toMatchObject([{ isEnded: true }]);
      expect(await subject().dueTimers(far, 10)).toEqual([]);
    });

    test("is not posted twice when its item was taken in meanwhile", async () => {
      const owner = await withQueued(subject());
      await subject().postCallEnd(keyOf(), ended());
      const acknowledged = (await subject().inbox(keyOf())).map(({ key }) => key);
      await owner.commit({ entries: [note("took it")], acknowledged });
      expect(await subject().postCallEnd(keyOf(), ended("again"))).toEqual({ posted: [] });
      expect(await subject().inbox(keyOf())).toEqual([]);
    });

    test("is nobody's business where the agent went on without it, or is gone", async () => {
      const owner = await withQueued(subject());
      await owner.commit({ entries: [callSettled] });
      expect(await subject().postCallEnd(keyOf(), ended())).toEqual({ posted: [] });
      expect(await subject().postCallEnd(keyOf("nobody"), ended())).toEqual({ posted: [] });
      expect(await subject().inbox(keyOf())).toEqual([]);
    });

    test("waits for an agent that is shut down", async () => {
      const owner = await withQueued(subject());
      await claimed(subject(), here.processId);
      await owner.commit({ entries: [note("sleeps")], owned: { ...ready, status: "shutdown" } });
      expect(await subject().postCallEnd(keyOf(), ended())).toEqual({ posted: [] });
      expect(await subject().inbox(keyOf())).toMatchObject([{ kind: "call.ended" }]);
    });

    test("may hold five megabytes", async () => {
      await withQueued(subject());
      const content = "ä".repeat(2_500_000);
      const artifact = { artifactId: "page", name: "page", contentType: "text/html", createdAt: NOW, content };
      const item = ended();
      const end = { ...item.end, artifacts: [{ ...artifact, size: 5_000_000 }] };
      await subject().postCallEnd(keyOf(), { ...item, end } as typeof item);
      const [posted] = await subject().inbox(keyOf());
      expect(posted?.kind === "call.ended" && posted.end).toEqual(end);
    });
  });

  describe("the alarm of a job", () => {
    test("is due by the steady time, gives the call, and comes again until the call has ended", async () => {
      await withQueued(subject(), { priority: 2 });
      const due = (steady: number) => subject().dueTimers(NOW, 10, steady);
      expect(await due(NOW + JOB_LOOK_MS - 1)).toEqual([]);
      expect(await due(NOW + JOB_LOOK_MS)).toEqual([alarm]);
      await claimed(subject(), here.processId);
      const late = NOW + JOB_LOOK_MS + 7;
      const next = { ...alarm, dueAt: late + JOB_LOOK_MS };
      expect(await subject().hearAlarm(alarm, NOW, late)).toMatchObject({
        posted: [],
        timers: [next],
        jobs: [{ callId: CALL, attempt: 1, queue: "browser", priority: 2, isRepeatable: false }],
      });
      expect(await due(far)).toEqual([next]);
      await subject().postCallEnd(keyOf(), ended());
      expect(await due(far)).toEqual([]);
      expect(await subject().hearAlarm(next, NOW, late)).toEqual({ posted: [], timers: [] });
    });

    test("gives nothing while a pause stands, and comes again all the same", async () => {
      await withQueued(subject());
      await subject().pause(keyOf(), "ann", NOW);
      const { timers, jobs } = await subject().hearAlarm(alarm, NOW, alarm.dueAt);
      expect(jobs).toEqual([]);
      expect(timers).toMatchObject([{ kind: "job", dueAt: alarm.dueAt + JOB_LOOK_MS }]);
    });

    test("is heard whoever owns the agent", async () => {
      const owner = await withQueued(subject());
      await subject().release(keyOf(), owner.epoch, { as: "parked" });
      expect((await subject().hearAlarm(alarm, NOW, alarm.dueAt)).jobs).toMatchObject([{ callId: CALL }]);
      const next = await new Owner(subject(), keyOf()).acquire(elsewhere);
      await next.commit({ entries: [callSettled] });
      expect(await subject().nextTimerAt()).toBeUndefined();
    });
  });
}
