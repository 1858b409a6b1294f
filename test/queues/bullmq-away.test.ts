import { inspect } from "node:util";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { InvalidInputError, StoreUnavailableError } from "../../src/errors/index.ts";
import { type BullmqQueuesOptions, bullmqQueues } from "../../src/queues/bullmq.ts";
import type { Queues } from "../../src/queues/index.ts";
import { agent, countsOf, Recorder, toolJob } from "../contracts/queues-fixtures.ts";
import { ownQueuePrefix, queuesOn, SHORT } from "../support/bullmq-queues.ts";
import { inFull } from "../support/full.ts";
import { PostgresServer, postgresProgram } from "../support/postgres-server.ts";
import { RedisServer, redisProgram } from "../support/redis-server.ts";

const servers = [
  { name: "Redis", isMissing: !redisProgram, start: () => RedisServer.start() },
  { name: "Postgres", isMissing: !postgresProgram, start: () => PostgresServer.start() },
] as const;

describe.each(servers.filter(({ isMissing }) => !isMissing))("$name that is away", ({ start }) => {
  let server: Awaited<ReturnType<typeof start>>;
  let options: Partial<BullmqQueuesOptions>;
  const opened: Queues[] = [];
  beforeEach(async () => {
    server = await start();
    options = { prefix: ownQueuePrefix(), timeoutMs: 2_500, lockMs: 20_000 };
  });
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((queues) => queues.close()));
    await server.stop();
  });

  function client(more: Partial<BullmqQueuesOptions> = {}): Queues {
    const queues = queuesOn(server, { ...options, ...more });
    opened.push(queues);
    return queues;
  }

  test("is reported in time; once it is back, workers continue with running, waiting and new jobs", async () => {
    const [asks, works] = [client(), client()];
    const recorder = new Recorder();
    const work = Promise.withResolvers<void>();
    const options = recorder.options(async (job) =>
      job.kind === "tool" && job.callId === "runs" ? work.promise : "done",
    );
    await works.work({ ...options, wakes: undefined });
    await asks.add("web", toolJob({ callId: "runs" }));
    await asks.add("web", toolJob({ callId: "later" }), { delayMs: 1_000 });
    await recorder.until(({ begun }) => begun.length === 1);
    expect(await works.health({ timeoutMs: 2_000 })).toMatchObject({ isHealthy: true });
    await server.kill();
    const from = performance.now();
    const refused = await Promise.allSettled([asks.add("web", toolJob({ callId: "new" })), asks.wake(agent)]);
    expect(performance.now() - from).toBeLessThan(5_000);
    const errors = refused.map((one) => one.status === "rejected" && (one.reason as unknown));
    expect(errors).toEqual([expect.any(StoreUnavailableError), expect.any(StoreUnavailableError)]);
    expect(await works.health({ timeoutMs: 300 })).toMatchObject({ isHealthy: false, roundTripMs: null });
    work.resolve();
    await server.launch();
    const back = performance.now();
    await asks.add("web", toolJob({ callId: "new" }));
    await recorder.until(({ ended }) => ended.length === 3);
    await countsOf(asks, "web", ({ active, waiting, delayed }) => active + waiting + delayed === 0);
    expect(performance.now() - back).toBeLessThan(10_000);
    expect(recorder.begun).toHaveLength(3);
    expect(await works.health({ timeoutMs: 5_000 })).toMatchObject({ isHealthy: true });
  });

  test("does not keep a worker from closing in time", async () => {
    const works = client();
    const recorder = new Recorder();
    await works.work(recorder.options(async () => "done"));
    await server.kill();
    const from = performance.now();
    expect(await works.drain({ timeoutMs: 500 })).toEqual({ left: 0 });
    expect(performance.now() - from).toBeLessThan(1_500);
    await works.close();
    expect(performance.now() - from).toBeLessThan(5_000);
    await expect(works.wake(agent)).rejects.toThrow(/closed/);
  });

  inFull(() => {
    test("makes `work` fail immediately instead of starting a silent worker", async () => {
      await server.kill();
      const works = client();
      const recorder = new Recorder();
      const options = recorder.options(async () => "done");
      await expect(works.work(options)).rejects.toThrow(StoreUnavailableError);
      await server.launch();
      await works.work(options);
      await works.wake(agent);
      await recorder.until(({ ended }) => ended.length === 1);
      expect(recorder.dead).toEqual([]);
    });
  });
});

describe.skipIf(!redisProgram)("Redis that refuses", () => {
  test("with the credentials makes every call fail without showing the password", async () => {
    const server = await RedisServer.start({ isLogged: false, password: "the-right-password" });
    const url = `redis://user:wr0ng-pa55word@127.0.0.1:${server.port}`;
    const queues = bullmqQueues({ url, timeoutMs: 300, secrets: [{ id: "a", secret: "s3cret-of-the-signatures" }] });
    const faults: unknown[] = [];
    const onFault = (error: unknown): void => void faults.push(error);
    const work = queues.work({ ...new Recorder().options(async () => "done"), onFault });
    const thrown = await Promise.allSettled([queues.wake(agent), queues.counts(["web"]), work]);
    expect(thrown.map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected"]);
    const shown = inspect([thrown, faults, await queues.health({ timeoutMs: 300 }), queues], { depth: 20 });
    expect(shown).not.toMatch(/wr0ng-pa55word|s3cret-of-the-signatures/);
    await queues.close();
    await server.stop();
  });

  test("no calls but evicts jobs when memory is full is not used", async () => {
    const server = await RedisServer.start({ isLogged: false, settings: ["--maxmemory-policy", "allkeys-lru"] });
    const queues = queuesOn(server);
    await expect(queues.wake(agent)).rejects.toThrow(InvalidInputError);
    await expect(queues.wake(agent)).rejects.toThrow("set maxmemory-policy noeviction");
    await queues.close();
    await server.stop();
  });

  test("as a single cluster node, or for a missing database, is reported immediately", async () => {
    const server = await RedisServer.start({ isLogged: false, settings: ["--cluster-enabled", "yes"] });
    const ofCluster = queuesOn(server);
    await expect(ofCluster.wake(agent)).rejects.toThrow("a node of a cluster; pass cluster: { nodes }");
    await ofCluster.close();
    await server.stop();
    const alone = await RedisServer.start({ isLogged: false });
    const queues = queuesOn(alone, { url: `${alone.url}/99` });
    await expect(queues.wake(agent)).rejects.toThrow("no database with the configured number");
    await queues.close();
    await alone.stop();
  });

  test("INFO to the user is reported with the missing right; CLIENT LIST is not required", async () => {
    const server = await RedisServer.start({ isLogged: false });
    const redis = server.client();
    await redis.acl("SETUSER", "blind", "on", ">pw", "~*", "&*", "+@all", "-info");
    await redis.acl("SETUSER", "worker", "on", ">pw", "~*", "&*", "+@all", "-client|list", "-keys", "-config");
    redis.disconnect();
    const blind = queuesOn(server, { url: `redis://blind:pw@127.0.0.1:${server.port}` });
    // The Redis client warns of it too.
    const warn = vi.spyOn(console, "warn").mockReturnValue();
    await expect(blind.wake(agent)).rejects.toThrow("may not call INFO");
    warn.mockRestore();
    const queues = queuesOn(server, { url: `redis://worker:pw@127.0.0.1:${server.port}` });
    const recorder = new Recorder();
    await queues.work(recorder.options(async () => "done"));
    await queues.wake(agent);
    await recorder.until(({ ended }) => ended.length === 1);
    expect(await queues.workers()).toBe(1);
    await Promise.all([blind.close(), queues.close()]);
    await server.stop();
  });

  test.each([
    [{}, "takes one of url, client and cluster; 0 are given"],
    [{ url: "http://localhost" }, "url: invalid Redis URL"],
    [{ url: "redis://localhost/jobs" }, "url: invalid Redis URL"],
    [{ url: "redis://localhost", prefix: "a{b}" }, "without braces"],
    [{ postgres: {} }, "bullmqQueues: postgres takes one of url and connection; none is given"],
    [{ postgres: { url: "redis://localhost" } }, "invalid Postgres URL; expected postgres://"],
    [
      { postgres: { url: "postgres://h/d" }, url: "redis://localhost" },
      "takes one of url, client, cluster and postgres",
    ],
    [{ postgres: { url: "postgres://h/d" }, prefix: "a:" }, "with Postgres, expected any text without colons"],
    [{ postgres: { url: "postgres://h/d", schema: "own" } }, 'no option "schema"'],
    [{ url: "redis://localhost", lockMs: 1 }, "lockMs is 1; expected a whole number from 100"],
    [{ url: "redis://localhost", secrets: [] }, "at least one { id, secret }"],
  ])("%o is refused with the expected value", (given, message) => {
    expect(() => bullmqQueues({ ...SHORT, ...given } as BullmqQueuesOptions)).toThrow(message);
  });
});
