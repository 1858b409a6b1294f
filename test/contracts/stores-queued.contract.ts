import { describe, expect, test } from "vitest";
import type { Stores } from "../../src/stores/index.ts";
import { note, toolStarted } from "./entry-fixtures.ts";
import { NOW, ROOT, TENANT, TURN } from "./names.ts";
import {
  alarm,
  CALL,
  callRetrying,
  callSettled,
  claimed,
  ended,
  openTurn,
  queuedIn,
  withQueued,
} from "./queued-fixtures.ts";
import { elsewhere, here, agentKey, LEASE_MS, ready } from "./stores-fixtures.ts";
import { openChild } from "./tree-fixtures.ts";

const far = Number.MAX_SAFE_INTEGER;
const queued = { turnId: TURN, step: 1, callId: CALL, attempt: 1, queue: "browser", isRepeatable: false, addedAt: NOW };

export function queuedContract(subject: () => Stores): void {
  describe("the record", () => {
    test("names a call that was granted with a queue, and a timer checks on its job", async () => {
      const owner = await openTurn(subject());
      const start = toolStarted({ queue: "browser", priority: 3, effect: "keyed" });
      expect(await owner.commit({ entries: [start] })).toMatchObject({ timers: [alarm] });
      const call = { ...queued, priority: 3, isRepeatable: true, claimedBy: null, isEnded: false };
      expect(await queuedIn(subject())).toEqual({ [`${CALL}#1`]: call });
      expect(await subject().dueTimers(far, 10)).toEqual([alarm]);
    });

    test("does not name a refused call, or one that its owner runs", async () => {
      const owner = await openTurn(subject(), { turnBudget: { maxToolCalls: 1 } });
      await owner.commit({ entries: [toolStarted()] });
      const outcome = await owner.commit({ entries: [toolStarted({ queue: "browser" })] });
      expect(outcome.entries).toMatchObject([{ type: "intent.refused", reason: "budget" }]);
      expect((await subject().readAgent(agentKey()))?.queued).toBeUndefined();
      expect(await subject().dueTimers(far, 10)).toEqual([]);
    });

    test("removes a settled call, whether or not it was claimed", async () => {
      const owner = await withQueued(subject());
      await claimed(subject(), here.processId);
      await owner.commit({ entries: [callSettled] });
      expect((await subject().readAgent(agentKey()))?.queued).toBeUndefined();
      expect(await subject().dueTimers(far, 10)).toEqual([]);
    });

    test("names the process that claimed a call, also when it starts again", async () => {
      const owner = await withQueued(subject());
      await claimed(subject(), here.processId);
      await owner.commit({ entries: [toolStarted({ queue: "browser" })] });
      expect(await claimed(subject(), elsewhere.processId)).toMatchObject({ type: "taken", by: here });
    });

    test("names the next attempt instead of the failed one", async () => {
      const owner = await withQueued(subject(), { effect: "none" });
      await claimed(subject(), here.processId);
      const next = toolStarted({ queue: "browser", effect: "none", attempt: 2 });
      await owner.commit({ entries: [callRetrying, next] });
      expect(Object.values(await queuedIn(subject()))).toMatchObject([{ attempt: 2, claimedBy: null, isEnded: false }]);
      expect(await subject().dueTimers(far, 10)).toMatchObject([{ kind: "job", attempt: 2 }]);
    });

    test("removes calls left open at the end of the turn, and keeps queued ones at other commits", async () => {
      const owner = await withQueued(subject());
      await owner.commit({ entries: [note("goes on")], owned: ready });
      expect(Object.keys(await queuedIn(subject()))).toEqual([`${CALL}#1`]);
      await owner.commit({ entries: [note("ends")], closedTurnId: TURN });
      expect(await queuedIn(subject())).toEqual({});
      expect(await subject().nextTimerAt()).toBeUndefined();
    });

    test("is exported and imported with its tree, and so is a parked turn", async () => {
      const owner = await withQueued(subject());
      await claimed(subject(), elsewhere.processId);
      await subject().release(agentKey(), owner.epoch, { as: "parked" });
      const tree = await subject().exportTree(TENANT, ROOT);
      if (!tree) throw new Error("the tree is missing");
      await owner.acquire();
      await owner.commit({ entries: [callSettled] });
      await subject().importTree(JSON.parse(JSON.stringify(tree)), here.processId);
      expect(Object.values(await queuedIn(subject()))).toMatchObject([{ claimedBy: elsewhere.processId }]);
      expect(await subject().dueTimers(far, 10)).toEqual([alarm]);
      expect(await subject().exportTree(TENANT, ROOT)).toMatchObject({ agents: [{ isHeld: false, isParked: true }] });
    });
  });

  describe("claiming", () => {
    test("of many that claim a call that is not repeatable, one gets it", async () => {
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

    test("a call that another process claimed is checked again when that process's lease has expired", async () => {
      await withQueued(subject());
      await subject().registerProcess(elsewhere, NOW);
      await claimed(subject(), elsewhere.processId);
      await subject().heartbeat(elsewhere.processId, NOW + 500);
      expect(await claimed(subject(), here.processId, { steady: NOW + 600 })).toMatchObject({
        type: "taken",
        isAlive: true,
      });
      const over = NOW + 500 + LEASE_MS + 1;
      expect(await subject().dueTimers(NOW, 10, over - 1)).toEqual([]);
      const due = await subject().dueTimers(NOW, 10, over);
      expect(due).toMatchObject([{ kind: "job", callId: CALL, attempt: 1, dueAt: over }]);
      // A second claim by the same process does not change the timer.
      await claimed(subject(), elsewhere.processId, { steady: NOW + 700 });
      expect(await subject().dueTimers(NOW, 10, over)).toEqual(due);
    });

    test("a call whose process is dead or removed is not given to another; the outcome names that process", async () => {
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

    test("a repeatable call is given to any process that claims it", async () => {
      await withQueued(subject(), { effect: "keyed" });
      expect(await claimed(subject(), here.processId)).toMatchObject({ type: "claimed" });
      expect(await claimed(subject(), elsewhere.processId)).toMatchObject({ type: "claimed" });
      expect(Object.values(await queuedIn(subject()))).toMatchObject([{ claimedBy: elsewhere.processId }]);
    });

    test("a pause on the agent or an ancestor refuses the claim until it is over; an abort refuses it permanently", async () => {
      const root = await openTurn(subject());
      const kid = await openChild(root, "kid");
      const [key, turnId] = [kid.key, `${kid.key.agentId}#1`];
      const start = toolStarted({ queue: "browser", turnId, accountId: `turn:${turnId}` });
      await kid.commit({ entries: [start] });
      await subject().pause(agentKey(), "ann", NOW);
      expect(await claimed(subject(), here.processId, { key })).toEqual({ type: "refused", reason: "paused" });
      expect(Object.values(await queuedIn(subject(), key))).toMatchObject([{ claimedBy: null }]);
      await subject().resume(agentKey(), "ann", NOW);
      await subject().abort(agentKey(), { turnId: TURN, by: "ann", reason: "no", stopReason: "user_requested" }, NOW);
      expect(await claimed(subject(), here.processId, { key })).toEqual({ type: "refused", reason: "aborted" });
    });

    test("an agent that is shut down during its turn keeps its open calls", async () => {
      const owner = await withQueued(subject());
      await owner.commit({ entries: [note("sleeps")], owned: { ...ready, status: "shutdown" } });
      expect(await claimed(subject(), here.processId)).toEqual({ type: "refused", reason: "paused" });
      await owner.commit({ entries: [note("wakes")], owned: { ...ready, status: "busy" } });
      expect(await claimed(subject(), here.processId)).toMatchObject({ type: "claimed" });
    });

    test("an attempt that is over, never existed, or belongs to an unknown agent cannot be claimed", async () => {
      const owner = await withQueued(subject());
      const over = { type: "over" };
      expect(await claimed(subject(), here.processId, { attempt: 2 })).toEqual(over);
      expect(await claimed(subject(), here.processId, { key: agentKey("nobody") })).toEqual(over);
      await subject().postCallEnd(agentKey(), ended());
      expect(await claimed(subject(), here.processId)).toEqual(over);
      await owner.commit({ entries: [callSettled] });
      expect(await claimed(subject(), here.processId)).toEqual(over);
    });
  });
}
