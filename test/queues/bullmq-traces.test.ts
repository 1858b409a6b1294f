import { Queue } from "bullmq";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { agent, countsOf, Recorder, toolJob } from "../contracts/queues-fixtures.ts";
import { ownQueuePrefix, queuesOn } from "../support/bullmq-queues.ts";
import { RedisServer, redisProgram } from "../support/redis-server.ts";

describe.skipIf(!redisProgram)("in Redis", () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await RedisServer.start({ isLogged: false });
  });
  afterAll(() => server.stop());

  test("ended jobs leave no keys, and queues that are no longer used leave few", async () => {
    const prefix = ownQueuePrefix();
    const queues = queuesOn(server, { prefix, deadLettersKept: 5 });
    const recorder = new Recorder();
    const options = recorder.options(async (job) => {
      if (job.kind === "tool" && job.callId.startsWith("fails")) throw new TypeError("broken");
    });
    await queues.work(options);
    for (let index = 0; index < 100; index += 1) {
      await queues.add("web", toolJob({ callId: `works-${index}` }), { priority: index % 3 });
      await queues.wake({ tenant: "default", agentId: `agent-${index}` });
      if (index < 20) await queues.add("web", toolJob({ callId: `fails-${index}` }));
    }
    await recorder.until(({ ended }) => ended.length === 220);
    await countsOf(queues, "web", ({ active, waiting }) => active + waiting === 0);
    await countsOf(queues, "wake", ({ active, waiting }) => active + waiting === 0);
    expect(await queues.health()).toMatchObject({ isHealthy: true });
    await queues.close();
    const redis = server.client();
    const keys = await redis.keys("*");
    const events = await Promise.all(keys.filter((key) => key.endsWith(":events")).map((key) => redis.xlen(key)));
    redis.disconnect();
    expect(keys.every((key) => key.startsWith(`{${prefix}`))).toBe(true);
    // Five dead letters and, for each of the two queues, its settings, its counters and the kept events.
    expect(keys.filter((key) => key.includes(":call.fails-") || key.includes("fails-"))).toHaveLength(5);
    expect(keys.length).toBeLessThanOrEqual(5 + 2 * 8);
    expect(Math.max(...events)).toBeLessThan(1_000);
  });

  test("many concurrent jobs on many queues use few connections", async () => {
    const queues = queuesOn(server);
    const names = Array.from({ length: 20 }, (_, index) => `queue-${index}`);
    await Promise.all(
      Array.from({ length: 200 }, (_, index) =>
        queues.add(names[index % names.length] ?? "", toolJob({ callId: `call-${index}` })),
      ),
    );
    const recorder = new Recorder();
    await queues.work(recorder.options(async () => "done", names));
    await recorder.until(({ ended }) => ended.length === 200);
    const redis = server.client();
    const connections = String(await redis.client("LIST"))
      .trim()
      .split("\n").length;
    redis.disconnect();
    // One for commands, one for work, one for reads, and one on which each queue waits for its next job, including the wakes.
    expect(connections).toBeLessThanOrEqual(3 + names.length + 1);
    await queues.close();
  });

  test("a job that one worker requeued is run by another", async () => {
    const prefix = ownQueuePrefix();
    const [leaves, stays] = [queuesOn(server, { prefix }), queuesOn(server, { prefix })];
    const recorder = new Recorder();
    const { promise: left, resolve: leave } = Promise.withResolvers<void>();
    const options = recorder.options(async (_job, { leaving }) => {
      if (recorder.begun.length > 1) return "done";
      leave();
      await new Promise((resolve) => leaving.addEventListener("abort", resolve, { once: true }));
      return "again";
    });
    await leaves.work(options);
    await leaves.wake(agent);
    await left;
    await stays.work(options);
    const from = performance.now();
    await leaves.drain({ timeoutMs: 5_000 });
    await recorder.until(({ ended }) => ended.length === 2);
    expect(performance.now() - from).toBeLessThan(2_000);
    expect(recorder.begun.map(({ run }) => run.deaths)).toEqual([0, 0]);
    await Promise.all([leaves.close(), stays.close()]);
  });

  test("jobs left waiting although a worker has capacity are reported", async () => {
    const prefix = ownQueuePrefix();
    const queues = queuesOn(server, { prefix });
    const recorder = new Recorder();
    await queues.work(recorder.options(async () => "done"));
    const redis = server.client();
    const place = new Queue("web", { connection: redis, prefix: `{${prefix}web}` });
    await place.pause();
    await queues.add("web", toolJob());
    expect(await queues.health()).toMatchObject({
      isHealthy: false,
      problems: ['jobs wait in queue "web", and this process starts none although it has free slots'],
    });
    await place.resume();
    await recorder.until(({ ended }) => ended.length === 1);
    expect(await queues.health()).toMatchObject({ isHealthy: true });
    await place.close();
    redis.disconnect();
    await queues.close();
  });
});
