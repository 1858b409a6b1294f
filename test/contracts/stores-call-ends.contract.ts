import { describe, expect, test } from "vitest";
import { JOB_LOOK_MS, type Stores } from "../../src/stores/index.ts";
import { note } from "./entry-fixtures.ts";
import { NOW, ROOT, TURN } from "./names.ts";
import { alarm, CALL, callSettled, claimed, ended, queuedIn, withQueued } from "./queued-fixtures.ts";
import { elsewhere, here, agentKey, Owner, ready } from "./stores-fixtures.ts";

const far = Number.MAX_SAFE_INTEGER;

export function callEndsContract(subject: () => Stores): void {
  describe("the end of a call", () => {
    test("is posted once, even if several processes report it", async () => {
      await withQueued(subject());
      const told = await Promise.all(["a", "b", "c"].map((text) => subject().postCallEnd(agentKey(), ended(text))));
      expect(told.flatMap(({ posted }) => posted)).toEqual([ROOT]);
      const [item, ...others] = await subject().inbox(agentKey());
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

    test("is not posted again after its item was acknowledged", async () => {
      const owner = await withQueued(subject());
      await subject().postCallEnd(agentKey(), ended());
      const acknowledged = (await subject().inbox(agentKey())).map(({ key }) => key);
      await owner.commit({ entries: [note("took it")], acknowledged });
      expect(await subject().postCallEnd(agentKey(), ended("again"))).toEqual({ posted: [] });
      expect(await subject().inbox(agentKey())).toEqual([]);
    });

    test("is dropped if the agent went on without it, or does not exist", async () => {
      const owner = await withQueued(subject());
      await owner.commit({ entries: [callSettled] });
      expect(await subject().postCallEnd(agentKey(), ended())).toEqual({ posted: [] });
      expect(await subject().postCallEnd(agentKey("nobody"), ended())).toEqual({ posted: [] });
      expect(await subject().inbox(agentKey())).toEqual([]);
    });

    test("waits for an agent that is shut down", async () => {
      const owner = await withQueued(subject());
      await claimed(subject(), here.processId);
      await owner.commit({ entries: [note("sleeps")], owned: { ...ready, status: "shutdown" } });
      expect(await subject().postCallEnd(agentKey(), ended())).toEqual({ posted: [] });
      expect(await subject().inbox(agentKey())).toMatchObject([{ kind: "call.ended" }]);
    });

    test("can hold five megabytes", async () => {
      await withQueued(subject());
      const content = "ä".repeat(2_500_000);
      const artifact = {
        artifactId: "page",
        name: "page",
        contentType: "text/html",
        createdAt: NOW,
        turnId: TURN,
        callId: `${TURN}:1:0`,
        content,
      };
      const item = ended();
      const end = { ...item.end, artifacts: [{ ...artifact, size: 5_000_000 }] };
      await subject().postCallEnd(agentKey(), { ...item, end } as typeof item);
      const [posted] = await subject().inbox(agentKey());
      expect(posted?.kind === "call.ended" && posted.end).toEqual(end);
    });
  });

  describe("the timer of a job", () => {
    test("is due by the steady time, returns the call, and repeats until the call has ended", async () => {
      await withQueued(subject(), { priority: 2 });
      const due = (steady: number) => subject().dueTimers(NOW, 10, steady);
      expect(await due(NOW + JOB_LOOK_MS - 1)).toEqual([]);
      expect(await due(NOW + JOB_LOOK_MS)).toEqual([alarm]);
      await claimed(subject(), here.processId);
      const late = NOW + JOB_LOOK_MS + 7;
      const next = { ...alarm, dueAt: late + JOB_LOOK_MS };
      expect(await subject().fireTimer(alarm, NOW, late)).toMatchObject({
        posted: [],
        timers: [next],
        jobs: [{ callId: CALL, attempt: 1, queue: "browser", priority: 2, isRepeatable: false }],
      });
      expect(await due(far)).toEqual([next]);
      await subject().postCallEnd(agentKey(), ended());
      expect(await due(far)).toEqual([]);
      expect(await subject().fireTimer(next, NOW, late)).toEqual({ posted: [], timers: [] });
    });

    test("returns nothing during a pause, and still repeats", async () => {
      await withQueued(subject());
      await subject().pause(agentKey(), "ann", NOW);
      const { timers, jobs } = await subject().fireTimer(alarm, NOW, alarm.dueAt);
      expect(jobs).toEqual([]);
      expect(timers).toMatchObject([{ kind: "job", dueAt: alarm.dueAt + JOB_LOOK_MS }]);
    });

    test("fires without an owner, and is removed once the next owner has settled the call", async () => {
      const owner = await withQueued(subject());
      await subject().release(agentKey(), owner.epoch, { as: "parked" });
      expect((await subject().fireTimer(alarm, NOW, alarm.dueAt)).jobs).toMatchObject([{ callId: CALL }]);
      const next = await new Owner(subject(), agentKey()).acquire(elsewhere);
      await next.commit({ entries: [callSettled] });
      expect(await subject().nextTimerAt()).toBeUndefined();
    });
  });
}
