import { expect, test } from "vitest";
import { StoreUnavailableError } from "../../src/errors/index.ts";
import { agent, countsOf, type QueuesSubject, Recorder } from "./queues-fixtures.ts";

const trace = {
  traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
  tracestate: "congo=t61rcWkgMzE",
};

/** The contract of wakes: jobs to activate agents. */
export function wakesContract(subject: () => QueuesSubject): void {
  test("a wake carries the agent and the trace to a worker", async () => {
    const { client, soon } = subject();
    const [asks, works] = [client(), client()];
    const recorder = new Recorder();
    await works.work(recorder.options(async () => "done"));
    await asks.wake(agent, trace);
    await soon(recorder.until(({ ended }) => ended.length === 1));
    expect(recorder.begun[0]?.job).toEqual({ kind: "wake", ...agent, ...trace });
    expect(recorder.begun[0]?.run).toMatchObject({ queue: "wake", deaths: 0 });
  });

  test("an agent that already waits is queued once", async () => {
    const { client, soon } = subject();
    const queues = client();
    for (let time = 0; time < 5; time += 1) await queues.wake(agent);
    expect(await queues.counts(["wake"])).toMatchObject([{ waiting: 1, active: 0 }]);
    const recorder = new Recorder();
    await queues.work(recorder.options(async () => "done"));
    await soon(recorder.until(({ ended }) => ended.length === 1));
    await countsOf(queues, "wake", ({ active, waiting }) => active + waiting === 0);
    expect(recorder.begun).toHaveLength(1);
  });

  test("a wake requested during a run is run once after it, and not concurrently", async () => {
    const { client, soon } = subject();
    const [asks, works] = [client(), client()];
    const first = Promise.withResolvers<void>();
    const recorder = new Recorder();
    await works.work(recorder.options(async () => (recorder.begun.length === 1 ? first.promise : undefined)));
    await asks.wake(agent);
    await soon(recorder.until(({ begun }) => begun.length === 1));
    for (let time = 0; time < 5; time += 1) await asks.wake(agent);
    first.resolve();
    await soon(recorder.until(({ ended }) => ended.length === 2));
    await countsOf(asks, "wake", ({ active, waiting }) => active + waiting === 0);
    expect(recorder.begun).toHaveLength(2);
    expect(recorder.most).toBe(1);
  });

  test("a wake requested during a run is kept if the run fails", async () => {
    const { client, soon } = subject();
    const queues = client();
    const first = Promise.withResolvers<void>();
    const recorder = new Recorder();
    await queues.work(recorder.options(async () => (recorder.begun.length === 1 ? first.promise : undefined)));
    await queues.wake(agent);
    await soon(recorder.until(({ begun }) => begun.length === 1));
    await queues.wake(agent);
    first.reject(new TypeError("broken"));
    await soon(recorder.until(({ ended }) => ended.length === 2));
    expect(recorder.dead).toMatchObject([{ job: { kind: "wake", ...agent }, cause: { code: "failed" } }]);
    expect(await queues.deadLetters("wake")).toHaveLength(1);
  });

  test("`awaited` is true while a wake waits for its first run or runs, and false if none exists or it waits for a retry", async () => {
    const { client, soon } = subject();
    const [asks, works] = [client(), client()];
    const other = { ...agent, agentId: "desk-8" };
    expect(await asks.awaited([])).toEqual([]);
    expect(await asks.awaited([agent, other])).toEqual([false, false]);
    await asks.wake(agent);
    expect(await asks.awaited([other, agent])).toEqual([false, true]);
    expect(await works.awaited([agent])).toEqual([true]);
    const first = Promise.withResolvers<void>();
    const recorder = new Recorder();
    await works.work(
      recorder.options(async () => {
        await first.promise;
        throw new StoreUnavailableError("away");
      }),
    );
    await soon(recorder.until(({ begun }) => begun.length === 1));
    expect(await asks.awaited([agent])).toEqual([true]);
    first.resolve();
    await countsOf(asks, "wake", ({ delayed }) => delayed === 1);
    expect(await asks.awaited([agent])).toEqual([false]);
  });

  test("a wake that waits for a retry runs immediately when it is requested again", async () => {
    const { client, soon, now } = subject();
    const queues = client();
    const recorder = new Recorder();
    const fails = 9;
    const options = recorder.options(async () => {
      if (recorder.begun.length <= fails) throw new StoreUnavailableError("away");
    });
    await queues.work(options);
    await queues.wake(agent);
    const from = now();
    for (let time = 1; time <= fails; time += 1) {
      await soon(recorder.until(({ ended }) => ended.length === time));
      await countsOf(queues, "wake", ({ active }) => active === 0);
      await queues.wake(agent);
    }
    await soon(recorder.until(({ ended }) => ended.length > fails));
    // Without new requests, the pauses would add up to a minute on average.
    expect(now() - from).toBeLessThan(10_000);
    expect(recorder.dead).toEqual([]);
  });

  test("different agents run concurrently, with any characters in their ids and tenants", async () => {
    const { client, soon } = subject();
    const queues = client();
    const all = Promise.withResolvers<void>();
    const recorder = new Recorder();
    await queues.work(recorder.options(() => all.promise));
    const agents = [
      { tenant: "default", agentId: "42" },
      { tenant: "a", agentId: "b" },
      { tenant: "a/b", agentId: "c" },
      { tenant: "a", agentId: "b/c" },
      { tenant: "default", agentId: "root~0af7651916cd43dd" },
      { tenant: "ä{}", agentId: "🦜:*\n" },
    ];
    for (const one of agents) await queues.wake(one);
    await soon(recorder.until(({ begun }) => begun.length === agents.length));
    all.resolve();
    await soon(recorder.until(({ ended }) => ended.length === agents.length));
    const ids = recorder.begun.map(({ job: { tenant, agentId } }) => ({ tenant, agentId }));
    expect(ids).toEqual(expect.arrayContaining(agents));
  });
}
