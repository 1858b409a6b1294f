import { expect, test } from "vitest";
import { InvariantError } from "../../src/errors/index.ts";
import { abortOf, agent, countsOf, type QueuesSubject, Recorder, toolJob } from "./queues-fixtures.ts";

/** A worker that drains and closes. */
export function drainContract(subject: () => QueuesSubject): void {
  test("closing starts no new job and resolves once the running jobs have ended", async () => {
    const { client, soon } = subject();
    const queues = client();
    const work = Promise.withResolvers<void>();
    const recorder = new Recorder();
    await queues.work(recorder.options(() => work.promise));
    await queues.add("web", toolJob());
    await soon(recorder.until(({ begun }) => begun.length === 1));
    const drained = queues.drain({ timeoutMs: 10_000 });
    const again = queues.drain({ timeoutMs: 1 });
    expect(recorder.begun[0]?.run.leaving.aborted).toBe(true);
    expect(recorder.begun[0]?.run.signal.aborted).toBe(false);
    await queues.add("web", toolJob({ callId: "later" }));
    await queues.wake(agent);
    work.resolve();
    expect(await soon(drained)).toEqual({ left: 0 });
    expect(await again).toEqual({ left: 0 });
    expect(await queues.counts(["web", "wake"])).toMatchObject([
      { waiting: 1, active: 0 },
      { waiting: 1, active: 0 },
    ]);
    expect(recorder.begun).toHaveLength(1);
    await expect(queues.work(recorder.options(async () => "done"))).rejects.toThrow(InvariantError);
    expect(await queues.health()).toMatchObject({ isHealthy: false, problems: ["the worker leaves"] });
  });

  test("running jobs are aborted in time: repeatable ones are requeued, for the others the agent is notified", async () => {
    const { client, soon, now } = subject();
    const queues = client();
    const recorder = new Recorder();
    const options = recorder.options(async (_job, { signal }) => {
      throw await abortOf(signal);
    });
    await queues.work(options);
    await queues.add("web", toolJob({ callId: "repeatable" }));
    await queues.add("web", toolJob({ callId: "once", isRepeatable: false }));
    await queues.wake(agent);
    await soon(recorder.until(({ begun }) => begun.length === 3));
    const from = now();
    expect(await soon(queues.drain({ timeoutMs: 1_000 }))).toEqual({ left: 0 });
    expect(now() - from).toBeLessThan(1_500);
    expect(recorder.dead).toMatchObject([{ job: { callId: "once" }, cause: { code: "stopped" } }]);
    expect(recorder.begun.map(({ run }) => run.signal.reason)).toMatchObject(
      Array.from({ length: 3 }, () => ({ why: "drained" })),
    );
    const web = await countsOf(queues, "web", ({ active }) => active === 0);
    expect(web).toMatchObject({ waiting: 1, dead: 1 });
    expect(await queues.counts(["wake"])).toMatchObject([{ waiting: 1, active: 0 }]);
  });

  test("a job that settles at the abort signal is requeued immediately", async () => {
    const { client, soon } = subject();
    const queues = client();
    const recorder = new Recorder();
    const options = recorder.options(async (_job, { leaving }) => {
      await abortOf(leaving);
      return "again";
    });
    await queues.work(options);
    await queues.wake(agent);
    await soon(recorder.until(({ begun }) => begun.length === 1));
    expect(await soon(queues.drain({ timeoutMs: 30_000 }))).toEqual({ left: 0 });
    expect(recorder.begun[0]?.run.signal.aborted).toBe(false);
    expect(await queues.counts(["wake"])).toMatchObject([{ waiting: 1, active: 0 }]);
  });

  test("closing resolves in time even if a job ignores its signal", async () => {
    const { client, soon, now } = subject();
    const queues = client();
    const recorder = new Recorder();
    const goesOn = Promise.withResolvers<void>();
    await queues.work(recorder.options(() => goesOn.promise));
    await queues.add("web", toolJob());
    await soon(recorder.until(({ begun }) => begun.length === 1));
    const from = now();
    expect(await soon(queues.drain({ timeoutMs: 500 }))).toEqual({ left: 1 });
    expect(now() - from).toBeGreaterThanOrEqual(450);
    expect(now() - from).toBeLessThan(1_500);
    goesOn.resolve();
  });

  test("closing twice has the effect of closing once, also without a worker", async () => {
    const { client, soon } = subject();
    const queues = client();
    await queues.wake(agent);
    await soon(Promise.all([queues.close(), queues.close()]));
    await expect(queues.wake(agent)).rejects.toThrow(/closed/);
  });
}
