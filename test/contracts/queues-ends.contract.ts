import { describe, expect, test } from "vitest";
import { JobStoppedError, StoreUnavailableError } from "../../src/errors/index.ts";
import { abortOf, countsOf, type QueuesSubject, Recorder, toolJob } from "./queues-fixtures.ts";

/** Jobs that fail, time out or are cancelled. */
export function endsContract(subject: () => QueuesSubject): void {
  test("a transient error is retried", async () => {
    const { client, soon } = subject();
    const queues = client();
    const recorder = new Recorder();
    const options = recorder.options(async () => {
      if (recorder.begun.length < 3) throw new StoreUnavailableError("away");
    });
    await queues.work(options);
    await queues.add("web", toolJob());
    await soon(recorder.until(({ ended }) => ended.length === 3));
    await countsOf(queues, "web", ({ active, waiting, delayed }) => active + waiting + delayed === 0);
    expect(recorder.dead).toEqual([]);
    expect(await queues.deadLetters("web")).toEqual([]);
  });

  test("any other error makes a dead letter with a redacted cause, after the agent was notified", async () => {
    const { client, soon } = subject();
    const queues = client();
    const recorder = new Recorder();
    const options = recorder.options(async () => {
      throw new TypeError("cannot read x with Bearer sk-abcdefghijklmnopqrstuvwxyz123456");
    });
    await queues.work(options);
    const job = toolJob({ isRepeatable: false });
    await queues.add("web", job);
    await soon(recorder.until(({ dead }) => dead.length === 1));
    await countsOf(queues, "web", ({ dead }) => dead === 1);
    const cause = { code: "failed", deaths: 0, message: expect.stringContaining("TypeError: cannot read x with") };
    expect(recorder.dead).toEqual([{ job: { kind: "tool", ...job }, cause }]);
    const [letter] = await queues.deadLetters("web");
    expect(letter).toMatchObject({ queue: "web", job: { kind: "tool", ...job }, cause });
    expect(JSON.stringify([letter, recorder.dead])).not.toContain("abcdefghijkl");
    expect(recorder.begun).toHaveLength(1);
    // Adding it again has no effect, because its agent was notified.
    await queues.add("web", job);
    expect(await queues.counts(["web"])).toMatchObject([{ waiting: 0, active: 0, dead: 1 }]);
  });

  test("if the agent cannot be notified, the dead letter waits and the job is not run again", async () => {
    const { client, soon } = subject();
    const queues = client();
    const recorder = new Recorder();
    const { onDead, ...others } = recorder.options(async () => {
      throw new TypeError("broken");
    });
    let told = 0;
    await queues.work({
      ...others,
      onDead: async (job, cause) => {
        told += 1;
        if (told < 3) throw new StoreUnavailableError("away");
        await onDead(job, cause);
      },
    });
    await queues.add("web", toolJob());
    await soon(recorder.until(({ dead }) => dead.length === 1));
    await countsOf(queues, "web", ({ dead }) => dead === 1);
    expect({ told, runs: recorder.begun.length }).toEqual({ told: 3, runs: 1 });
    expect(recorder.dead[0]?.cause).toMatchObject({ code: "failed", message: "TypeError: broken" });
  });

  test("a job that takes too long is aborted with the reason, and may still return its result", async () => {
    const { client, soon } = subject();
    const queues = client();
    const recorder = new Recorder();
    const reasons: unknown[] = [];
    await queues.work(recorder.options(async (_job, { signal }) => void reasons.push(await abortOf(signal))));
    await queues.add("web", toolJob({ timeoutMs: 200 }));
    await soon(recorder.until(({ ended }) => ended.length === 1));
    expect(reasons).toMatchObject([{ why: "timed_out", message: "the job did not end within 200 ms" }]);
    await countsOf(queues, "web", ({ active, waiting }) => active + waiting === 0);
    expect(recorder.dead).toEqual([]);
  });

  test("a timed out job that returns nothing becomes a dead letter, and one that goes on is abandoned", async () => {
    const { client, soon } = subject();
    const queues = client();
    const recorder = new Recorder();
    const goesOn = Promise.withResolvers<void>();
    const options = recorder.options(async (job, { signal }) => {
      if (job.kind === "tool" && job.callId === "deaf") await goesOn.promise;
      throw await abortOf(signal);
    });
    await queues.work(options);
    await queues.add("web", toolJob({ callId: "deaf", timeoutMs: 100 }));
    await queues.add("web", toolJob({ callId: "hears", timeoutMs: 100 }));
    await soon(recorder.until(({ dead }) => dead.length === 2));
    const codes = recorder.dead.map(({ cause }) => cause.code);
    expect(codes).toEqual(["timed_out", "timed_out"]);
    expect(recorder.ended).toHaveLength(1);
    await countsOf(queues, "web", ({ dead, active }) => dead === 2 && active === 0);
    goesOn.resolve();
  });

  test("a job to run again is requeued ahead of waiting jobs", async () => {
    const { client, soon } = subject();
    const queues = client();
    const recorder = new Recorder();
    const { tools, ...others } = recorder.options(async () => (recorder.begun.length === 1 ? "again" : "done"));
    const run = tools?.run ?? (async () => "done" as const);
    await queues.add("web", toolJob({ callId: "first" }));
    await queues.add("web", toolJob({ callId: "second" }));
    await queues.work({ ...others, tools: { run, queues: { web: { concurrency: 1 } } } });
    await soon(recorder.until(({ ended }) => ended.length === 3));
    const order = recorder.begun.map(({ job }) => job.kind === "tool" && job.callId);
    expect(order).toEqual(["first", "first", "second"]);
  });

  describe("cancelling", () => {
    test("removes a waiting or delayed job, which can be added again and then runs", async () => {
      const { client, soon } = subject();
      const [asks, works] = [client(), client()];
      await asks.add("web", toolJob({ callId: "waits" }));
      await asks.add("web", toolJob({ callId: "later" }), { delayMs: 60_000 });
      await asks.add("web", toolJob({ callId: "stands in line" }), { priority: 5 });
      for (const callId of ["waits", "later", "stands in line"]) {
        expect(await works.cancel("web", toolJob({ callId }), "no more")).toBe("removed");
        expect(await works.cancel("web", toolJob({ callId }), "no more")).toBe("unknown");
      }
      expect(await asks.counts(["web"])).toMatchObject([{ waiting: 0, active: 0, delayed: 0, dead: 0 }]);
      const recorder = new Recorder();
      await works.work(recorder.options(async () => "done"));
      await asks.add("web", toolJob({ callId: "waits" }));
      await soon(recorder.until(({ ended }) => ended.length === 1));
      expect(recorder.begun.map(({ job }) => job.kind === "tool" && job.callId)).toEqual(["waits"]);
    });

    test("reaches a job that runs in any process, makes no dead letter, and the job can be added again", async () => {
      const { client, soon } = subject();
      const [asks, works] = [client(), client()];
      const recorder = new Recorder();
      const options = recorder.options(async (_job, { signal }) => {
        if (recorder.begun.length === 1) throw await abortOf(signal);
      });
      await works.work(options);
      await asks.add("web", toolJob());
      await soon(recorder.until(({ begun }) => begun.length === 1));
      expect(await asks.cancel("web", toolJob(), "the agent was aborted")).toBe("asked");
      await soon(recorder.until(({ ended }) => ended.length === 1));
      const reason: unknown = recorder.begun[0]?.run.signal.reason;
      expect(reason).toBeInstanceOf(JobStoppedError);
      expect(reason).toMatchObject({ why: "cancelled", message: "the agent was aborted" });
      await countsOf(asks, "web", ({ active, waiting, dead }) => active + waiting + dead === 0);
      await asks.add("web", toolJob());
      await soon(recorder.until(({ ended }) => ended.length === 2));
      expect(recorder.dead).toEqual([]);
    });

    test("prevents a job from being requeued", async () => {
      const { client, soon } = subject();
      const queues = client();
      const recorder = new Recorder();
      const options = recorder.options(async (_job, { signal }) => {
        await abortOf(signal);
        return "again";
      });
      await queues.work(options);
      await queues.add("web", toolJob());
      await soon(recorder.until(({ begun }) => begun.length === 1));
      await queues.cancel("web", toolJob(), "enough");
      await soon(countsSoon(queues));
      expect({ begun: recorder.begun.length, dead: recorder.dead }).toEqual({ begun: 1, dead: [] });
    });

    test("abandons a job that ignores its signal", async () => {
      const { client, soon } = subject();
      const queues = client();
      const recorder = new Recorder();
      const goesOn = Promise.withResolvers<void>();
      await queues.work(recorder.options(() => goesOn.promise));
      await queues.add("web", toolJob());
      await soon(recorder.until(({ begun }) => begun.length === 1));
      await queues.cancel("web", toolJob(), "enough");
      await soon(countsSoon(queues));
      expect({ ended: recorder.ended, dead: recorder.dead }).toEqual({ ended: [], dead: [] });
      goesOn.resolve();
    });
  });
}

async function countsSoon(queues: Parameters<typeof countsOf>[0]): Promise<void> {
  await countsOf(queues, "web", ({ active, waiting, dead }) => active + waiting + dead === 0);
}
