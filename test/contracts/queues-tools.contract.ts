import { expect, test } from "vitest";
import { InvalidInputError, InvariantError } from "../../src/errors/index.ts";
import { agent, countsOf, type QueuesSubject, Recorder, toolJob } from "./queues-fixtures.ts";

/** The message of an `InvalidInputError`. */
async function refused(call: Promise<unknown>): Promise<string> {
  const error: unknown = await call.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(InvalidInputError);
  return (error as InvalidInputError).message;
}

/** The contract of tool jobs. */
export function toolsContract(subject: () => QueuesSubject): void {
  test("a tool job carries exactly the fields it was added with", async () => {
    const { client, soon } = subject();
    const [asks, works] = [client(), client()];
    const recorder = new Recorder();
    await works.work(recorder.options(async () => "done", ["web", "browser"]));
    const job = toolJob({
      epoch: 3,
      timeoutMs: 60_000,
      traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    });
    await asks.add("browser", job, { priority: 2 });
    await soon(recorder.until(({ ended }) => ended.length === 1));
    expect(recorder.begun[0]?.job).toEqual({ kind: "tool", ...job });
    expect(recorder.begun[0]?.run.queue).toBe("browser");
  });

  test("adding a job that waits or runs has no effect; after its end it is a new job", async () => {
    const { client, soon } = subject();
    const [asks, works] = [client(), client()];
    const first = Promise.withResolvers<void>();
    const recorder = new Recorder();
    for (let time = 0; time < 3; time += 1) await asks.add("web", toolJob());
    await works.work(recorder.options(() => first.promise));
    await soon(recorder.until(({ begun }) => begun.length === 1));
    await asks.add("web", toolJob());
    first.resolve();
    await countsOf(asks, "web", ({ active, waiting }) => active + waiting === 0);
    expect(recorder.begun).toHaveLength(1);
    await asks.add("web", toolJob());
    await asks.add("web", toolJob({ attempt: 2 }));
    await soon(recorder.until(({ ended }) => ended.length === 3));
    expect(recorder.begun.map(({ job }) => job.kind === "tool" && job.attempt)).toEqual([1, 1, 2]);
  });

  test("no more jobs run at a time than the queue allows; other queues are not delayed", async () => {
    const { client, soon } = subject();
    const queues = client();
    const slow = Promise.withResolvers<void>();
    const recorder = new Recorder();
    const { tools, ...others } = recorder.options(async (_job, { queue }) =>
      queue === "slow" ? slow.promise : "done",
    );
    const run = tools?.run ?? (async () => "done" as const);
    await queues.work({ ...others, tools: { run, queues: { slow: { concurrency: 2 }, quick: {} } } });
    for (let index = 0; index < 5; index += 1) await queues.add("slow", toolJob({ callId: `slow-${index}` }));
    await soon(recorder.until(({ begun }) => begun.length === 2));
    for (let index = 0; index < 3; index += 1) await queues.add("quick", toolJob({ callId: `quick-${index}` }));
    await soon(recorder.until(({ ended }) => ended.length === 3));
    const since = expect.any(Number) as number;
    expect(await queues.counts(["slow"])).toMatchObject([
      { queue: "slow", waiting: 3, waitingSince: since, active: 2, activeSince: since, delayed: 0, dead: 0 },
    ]);
    slow.resolve();
    await soon(recorder.until(({ ended }) => ended.length === 8));
    expect(await queues.counts(["quick"])).toMatchObject([{ waitingSince: null, activeSince: null }]);
    expect(recorder.most).toBeLessThanOrEqual(3);
  });

  test("lower priority numbers run first; jobs of one priority run in order", async () => {
    const { client, soon } = subject();
    const queues = client();
    const priorities = [3, 1, 0, 3, 1, 0];
    for (const [index, priority] of priorities.entries()) {
      await queues.add("web", toolJob({ callId: `call-${index}` }), { priority });
    }
    const recorder = new Recorder();
    const { tools, ...others } = recorder.options(async () => "done");
    const run = tools?.run ?? (async () => "done" as const);
    await queues.work({ ...others, tools: { run, queues: { web: { concurrency: 1 } } } });
    await soon(recorder.until(({ ended }) => ended.length === priorities.length));
    const order = recorder.begun.map(({ job }) => (job.kind === "tool" ? job.callId : ""));
    expect(order).toEqual(["call-2", "call-5", "call-1", "call-4", "call-0", "call-3"]);
  });

  test("a delayed job does not run before its time", async () => {
    const { client, soon, now } = subject();
    const queues = client();
    const recorder = new Recorder();
    await queues.work(recorder.options(async () => "done"));
    const from = now();
    await queues.add("web", toolJob(), { delayMs: 300 });
    expect(await queues.counts(["web"])).toMatchObject([{ delayed: 1, waiting: 0 }]);
    await soon(recorder.until(({ begun }) => begun.length === 1));
    expect(now() - from).toBeGreaterThanOrEqual(295);
    expect(now() - from).toBeLessThan(3_000);
  });

  test("no more jobs start within an interval than the rate limit allows", async () => {
    const { client, soon, now } = subject();
    const queues = client();
    const begun: number[] = [];
    const recorder = new Recorder();
    const { tools, ...others } = recorder.options(async () => void begun.push(now()));
    const run = tools?.run ?? (async () => "done" as const);
    const web = { concurrency: 10, rateLimit: { max: 2, perMs: 400 } };
    const from = now();
    await queues.work({ ...others, tools: { run, queues: { web } } });
    for (let index = 0; index < 5; index += 1) await queues.add("web", toolJob({ callId: `call-${index}` }));
    await soon(recorder.until(({ ended }) => ended.length === 5));
    // The test sees the start of a job with a delay, so it can only assert lower bounds.
    const [, , third = 0, , fifth = 0] = begun;
    expect(third - from).toBeGreaterThanOrEqual(390);
    expect(fifth - from).toBeGreaterThanOrEqual(790);
  });

  test("invalid arguments are refused with the expected values", async () => {
    const queues = subject().client();
    expect(await refused(queues.add("wake", toolJob()))).toContain("is reserved for agents");
    expect(await refused(queues.add("a:b", toolJob()))).toContain("not a valid id");
    expect(await refused(queues.add("web", toolJob(), { priority: -1 }))).toContain("from 0 to 1000000");
    expect(await refused(queues.add("web", toolJob(), { delayMs: 0.5 }))).toContain("whole number");
    expect(await refused(queues.add("web", toolJob({ attempt: 0 })))).toContain("attempt");
    expect(await refused(queues.add("web", toolJob({ callId: "x".repeat(600) })))).toContain("callId");
    expect(await refused(queues.add("web", toolJob({ traceparent: "nonsense" })))).toContain("traceparent");
    expect(
      await refused(
        queues.wake(agent, { traceparent: `00-${"a".repeat(32)}-${"b".repeat(16)}-01`, tracestate: "a\nb" }),
      ),
    ).toContain("tracestate");
    expect(await refused(queues.work({ onDead: async () => undefined }))).toContain("it was given none");
    expect(await refused(queues.drain({ timeoutMs: -1 }))).toContain("timeoutMs is -1");
  });

  test("work can start only once", async () => {
    const queues = subject().client();
    const recorder = new Recorder();
    await queues.work(recorder.options(async () => "done"));
    await expect(queues.work(recorder.options(async () => "done"))).rejects.toThrow(InvariantError);
  });

  test("a canary job runs; after the queues are closed it fails", async () => {
    const { client, soon } = subject();
    const queues = client();
    await queues.work(new Recorder().options(async () => "done"));
    expect(await soon(queues.health({ timeoutMs: 5_000 }))).toMatchObject({ isHealthy: true, problems: [] });
    await soon(queues.close());
    const health = await queues.health();
    expect(health).toMatchObject({ isHealthy: false, problems: ["the queues are closed"] });
  });
}
