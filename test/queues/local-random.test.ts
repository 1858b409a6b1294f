import * as fc from "fast-check";
import { expect, test } from "vitest";
import { localQueues } from "../../src/queues/index.ts";
import { createFakeClock } from "../../src/testing/index.ts";
import { toolJob } from "../contracts/queues-fixtures.ts";
import { amount } from "../support/full.ts";

type Step =
  | { readonly type: "add"; readonly call: number; readonly delayMs: number }
  | { readonly type: "cancel"; readonly call: number }
  | { readonly type: "end"; readonly call: number; readonly how: "done" | "again" | "fails" }
  | { readonly type: "pass"; readonly ms: number };

const call = fc.integer({ min: 0, max: 4 });
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ type: fc.constant("add" as const), call, delayMs: fc.constantFrom(0, 0, 0, 50) }),
  fc.record({ type: fc.constant("cancel" as const), call }),
  fc.record({
    type: fc.constant("end" as const),
    call,
    how: fc.constantFrom("done" as const, "done" as const, "again" as const, "fails" as const),
  }),
  fc.record({ type: fc.constant("pass" as const), ms: fc.integer({ min: 1, max: 60 }) }),
);

/** The state of a call in the model of the queue. */
type State = "absent" | "delayed" | "waiting" | "running" | "dead";

const CONCURRENCY = 2;

/** Runs one program against the queue and against a simple model of it; checks how often each job began. */
async function play(steps: readonly Step[]): Promise<void> {
  const clock = createFakeClock();
  const queues = localQueues({ clock });
  const ends = new Map<string, PromiseWithResolvers<"done" | "again">>();
  const states = new Map<string, State>();
  const faults: string[] = [];
  let begun = 0;
  await queues.work({
    tools: {
      queues: { web: { concurrency: CONCURRENCY } },
      run: ({ callId }, { signal }) => {
        begun += 1;
        // Only a job that was added and has neither been cancelled nor ended may begin, and never concurrently with itself.
        if (states.get(callId) !== "waiting") faults.push(`${callId} began while it was ${states.get(callId)}`);
        states.set(callId, "running");
        const end = Promise.withResolvers<"done" | "again">();
        ends.set(callId, end);
        signal.addEventListener("abort", () => end.reject(signal.reason), { once: true });
        return end.promise;
      },
    },
    onDead: async () => undefined,
  });
  const due = new Map<string, number>();
  for (const one of steps) {
    if (one.type === "pass") {
      clock.advance(one.ms);
      for (const [callId, at] of due) {
        if (at <= clock.elapsed() && states.get(callId) === "delayed") states.set(callId, "waiting");
      }
    } else await touch(one);
    await new Promise((resolve) => setImmediate(resolve));
    const of = (state: State): number => [...states.values()].filter((value) => value === state).length;
    expect(await queues.counts(["web"])).toMatchObject([
      { waiting: of("waiting"), active: of("running"), delayed: of("delayed"), dead: of("dead") },
    ]);
    // All slots are used while any job waits.
    const wanted = of("running") + of("waiting");
    expect(of("running")).toBe(Math.min(CONCURRENCY, wanted));
    expect(faults).toEqual([]);
  }
  expect(begun).toBeGreaterThanOrEqual([...states.values()].filter((state) => state === "dead").length);
  const closed = queues.close();
  for (const end of ends.values()) end.resolve("done");
  await closed;

  async function touch(one: Exclude<Step, { type: "pass" }>): Promise<void> {
    const job = toolJob({ callId: `call-${one.call}` });
    const state = states.get(job.callId) ?? "absent";
    if (one.type === "add") {
      if (state === "absent") {
        states.set(job.callId, one.delayMs > 0 ? "delayed" : "waiting");
        due.set(job.callId, clock.elapsed() + one.delayMs);
      }
      await queues.add("web", job, { delayMs: one.delayMs });
      return;
    }
    if (one.type === "cancel") {
      const outcome = await queues.cancel("web", job, "random");
      const expected = { absent: "unknown", dead: "unknown", running: "asked", delayed: "removed", waiting: "removed" };
      expect(outcome).toBe(expected[state]);
      if (outcome !== "unknown") states.set(job.callId, "absent");
      return;
    }
    if (state !== "running") return;
    states.set(job.callId, { done: "absent", again: "waiting", fails: "dead" }[one.how] as State);
    if (one.how === "fails") ends.get(job.callId)?.reject(new TypeError("random"));
    else ends.get(job.callId)?.resolve(one.how);
  }
}

test("random programs of adding, removing and adding again", async () => {
  await fc.assert(fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 60 }), play), {
    numRuns: amount(1_000, 170),
  });
});
