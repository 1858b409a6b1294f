import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { TroupeError } from "../../src/errors/index.ts";
import type { BullmqQueuesOptions } from "../../src/queues/bullmq.ts";
import type { Queues } from "../../src/queues/index.ts";
import { agent, countsOf, Recorder, toolJob } from "../contracts/queues-fixtures.ts";
import { locationOf, ownQueuePrefix, queuesOn, SHORT } from "../support/bullmq-queues.ts";
import { inFull } from "../support/full.ts";
import { PostgresServer, postgresProgram } from "../support/postgres-server.ts";
import { RedisServer, redisProgram } from "../support/redis-server.ts";

const program = fileURLToPath(new URL("dying-worker.ts", import.meta.url));

/** A worker in a process of its own. */
class DyingWorker {
  readonly #child: ChildProcessByStdio<Writable, Readable, null>;
  readonly #lines: AsyncIterator<string>;

  constructor(options: BullmqQueuesOptions, how: "kill" | "hang") {
    const args = ["--conditions=troupe-source", program, JSON.stringify(options), how];
    this.#child = spawn(process.execPath, args, { stdio: ["pipe", "pipe", "inherit"] });
    this.#lines = createInterface({ input: this.#child.stdout })[Symbol.asyncIterator]();
  }

  /** The next printed line; `undefined` once the process has ended. */
  async says(): Promise<string | undefined> {
    const { value, done } = await this.#lines.next();
    return done === true ? undefined : value;
  }

  /** All remaining lines until the process has ended. */
  async lastWords(): Promise<string[]> {
    const words: string[] = [];
    for (let line = await this.says(); line !== undefined; line = await this.says()) words.push(line);
    return words;
  }

  /** Ends the input of the process and returns its exit code. */
  async leave(): Promise<number | null> {
    const ended = once(this.#child, "exit");
    this.#child.stdin.end();
    const [code] = (await ended) as [number | null];
    return code;
  }

  async end(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = once(this.#child, "exit");
    this.#child.kill("SIGKILL");
    await ended;
  }
}

const servers = [
  { name: "Redis", isMissing: !redisProgram, start: () => RedisServer.start({ isLogged: false }) },
  { name: "Postgres", isMissing: !postgresProgram, start: () => PostgresServer.start() },
] as const;

inFull(() => {
  const places = servers.flatMap(({ name, isMissing, start }) =>
    isMissing ? [] : ["there", "away"].map((where) => ({ name, where, start })),
  );
  test.each(places)("a worker that closes while $name is $where ends", async ({ where, start }) => {
    const server = await start();
    const worker = new DyingWorker({ ...SHORT, ...locationOf(server), timeoutMs: 1_000 }, "hang");
    expect(await worker.says()).toBe("ready");
    if (where === "away") await server.kill();
    expect(await worker.leave()).toBe(0);
    expect(await worker.lastWords()).toEqual(["left"]);
    await server.stop();
  });
});

describe.each(servers.filter(({ isMissing }) => !isMissing))("$name: a worker process that dies", ({ name, start }) => {
  const onRedis = name === "Redis";
  let server: Awaited<ReturnType<typeof start>>;
  let options: BullmqQueuesOptions;
  let queues: Queues;
  const workers: DyingWorker[] = [];
  beforeAll(async () => {
    server = await start();
  });
  afterAll(() => server.stop());
  beforeEach(() => {
    options = { ...SHORT, ...locationOf(server), prefix: ownQueuePrefix() };
    queues = queuesOn(server, options);
  });
  afterEach(async () => {
    for (const worker of workers.splice(0)) await worker.end();
    await queues.close();
  });

  function dyingWorker(how: "kill" | "hang"): DyingWorker {
    const worker = new DyingWorker(options, how);
    workers.push(worker);
    return worker;
  }

  async function hangingWorker(): Promise<DyingWorker> {
    const worker = dyingWorker("hang");
    expect(await worker.says()).toBe("ready");
    return worker;
  }

  async function workersToBe(count: number): Promise<void> {
    while ((await queues.workers("web")) !== count) await new Promise((resolve) => setImmediate(resolve));
  }

  test("leaves its job to another worker, which detects the death", async () => {
    const worker = await hangingWorker();
    await queues.add("web", toolJob({ callId: "search" }));
    await queues.wake(agent);
    expect(new Set([await worker.says(), await worker.says()])).toEqual(new Set(["begun desk-7", "begun search"]));
    // Requested during a run, the wake runs after it, even if that worker died.
    await queues.wake(agent);
    await worker.end();
    const from = performance.now();
    const recorder = new Recorder();
    await queues.work(recorder.options(async () => "done"));
    await recorder.until(({ ended }) => ended.length === 3);
    expect(performance.now() - from).toBeLessThan(5_000);
    const deaths = recorder.begun.map(({ job, run }) => `${job.kind} ${run.deaths}`);
    expect(new Set(deaths)).toEqual(new Set(["tool 1", "wake 0", "wake 1"]));
    expect(recorder.dead).toEqual([]);
    for (const queue of ["web", "wake"]) {
      expect(await countsOf(queues, queue, ({ active }) => active === 0)).toMatchObject({ waiting: 0, deaths: 1 });
    }
  });

  test.runIf(onRedis)("with the notification of a job leaves the job to workers that poll", async () => {
    const recorder = new Recorder();
    await queues.work(recorder.options(async () => "done"));
    const { url } = server;
    const [other, dying] = [new Redis(url), new Redis(url)];
    let isTaken = false;
    /** Waits until the workers of both queues block, and the dying client too until it has both markers. */
    const allWait = async (): Promise<void> => {
      while (!(await other.info("clients")).includes(`blocked_clients:${isTaken ? 2 : 3}\r`)) continue;
    };
    try {
      const [meta = ""] = await other.keys(`*${options.prefix}*:web:meta`);
      // The client that has blocked longest gets the marker. A worker that takes a job writes another marker, so the dying client
      // waits for both.
      const marker = meta.replace(/meta$/, "marker");
      const signs = Promise.all([dying.bzpopmin(marker, 0), dying.bzpopmin(marker, 0)]).then(() => {
        isTaken = true;
      });
      const from = performance.now();
      for (const ended of [1, 2]) {
        await allWait();
        await queues.add("web", toolJob({ callId: `call ${ended}` }));
        await recorder.until((seen) => seen.ended.length === ended);
      }
      await signs;
      expect(performance.now() - from).toBeLessThan(4_000);
    } finally {
      other.disconnect();
      dying.disconnect();
    }
  });

  inFull(() => {
    test.each(["tool", "wake"] as const)(
      "during a %s job is followed by a second worker, and not by a third",
      async (kind) => {
        if (kind === "tool") await queues.add("web", toolJob({ callId: "desk-7" }));
        else await queues.wake(agent);
        for (let death = 1; death <= 2; death += 1) {
          // The job may begin before the worker reports that it is ready.
          const words = await dyingWorker("kill").lastWords();
          expect(words.filter((line) => line !== "ready")).toEqual(["begun desk-7"]);
        }
        const from = performance.now();
        const recorder = new Recorder();
        await queues.work(recorder.options(async () => "done"));
        await recorder.until(({ dead }) => dead.length === 1);
        expect(performance.now() - from).toBeLessThan(5_000);
        const cause = { code: "worker_died", deaths: 2, message: expect.stringContaining(": 2 times") };
        expect(recorder.dead).toMatchObject([{ job: { kind, ...agent }, cause }]);
        const queue = kind === "tool" ? "web" : "wake";
        await countsOf(queues, queue, ({ dead, active, waiting }) => dead === 1 && active + waiting === 0);
        expect(await queues.deadLetters(queue)).toMatchObject([{ queue, job: { kind, ...agent }, cause }]);
        expect(recorder.begun).toEqual([]);
        // The agent can still be woken.
        await queues.wake(agent);
        await recorder.until(({ ended }) => ended.length === 1);
        expect(recorder.begun[0]?.run.deaths).toBe(0);
      },
    );

    test("with a job that is not repeatable: its agent gets an error within 5 seconds, and the job is not run again", async () => {
      const worker = await hangingWorker();
      await queues.add("web", toolJob({ isRepeatable: false }));
      expect(await worker.says()).toBe("begun desk-7#1:1:0");
      const recorder = new Recorder();
      await queues.work(recorder.options(async () => "done"));
      await worker.end();
      const from = performance.now();
      await recorder.until(({ dead }) => dead.length === 1);
      expect(performance.now() - from).toBeLessThan(5_000);
      expect(recorder.dead[0]?.cause).toMatchObject({
        code: "worker_died",
        deaths: 1,
        message: expect.stringContaining("once, and the job may not be repeated"),
      });
      await countsOf(queues, "web", ({ dead, active }) => dead === 1 && active === 0);
      expect(recorder.begun).toEqual([]);
    });

    test("is no longer counted once it is considered dead; others are", async () => {
      const [first, second] = [await hangingWorker(), await hangingWorker()];
      expect(await queues.workers("web")).toBe(2);
      await first.end();
      await workersToBe(1);
      // Longer than a silent worker counts as alive.
      await queues.add("later", toolJob(), { delayMs: 2 * SHORT.lockMs });
      const recorder = new Recorder();
      await queues.work(recorder.options(async () => "done", ["later"]));
      await recorder.until(({ ended }) => ended.length === 1);
      expect(await queues.workers("web")).toBe(1);
      await second.end();
      await workersToBe(0);
      expect(await queues.workers()).toBe(1);
    });

    test("does not lose a cancellation", async () => {
      const worker = await hangingWorker();
      await queues.add("web", toolJob());
      expect(await worker.says()).toBe("begun desk-7#1:1:0");
      await worker.end();
      expect(await queues.cancel("web", toolJob(), "no more")).toBe("asked");
      const recorder = new Recorder();
      await queues.work(recorder.options(async () => "done"));
      await countsOf(queues, "web", ({ active, waiting, dead }) => active + waiting + dead === 0);
      expect(recorder.begun).toEqual([]);
    });
  });

  test.runIf(onRedis).each(["runs on", "ends at once"])(
    "is considered dead when its lock is gone; a job that then %s is not started again",
    async (how) => {
      const recorder = new Recorder();
      const work = Promise.withResolvers<void>();
      const faults: TroupeError[] = [];
      const onFault = (fault: TroupeError): void => void faults.push(fault);
      await queues.work({ ...recorder.options(() => work.promise), onFault });
      await queues.add("web", toolJob({ isRepeatable: false }));
      await recorder.until(({ begun }) => begun.length === 1);
      const redis = new Redis(server.url);
      const [lock = ""] = await redis.keys(`*${options.prefix}web*:lock`);
      await redis.del(lock);
      redis.disconnect();
      if (how === "ends at once") work.resolve();
      await countsOf(queues, "web", ({ deaths }) => deaths === 1);
      work.resolve();
      await countsOf(queues, "web", ({ active, waiting }) => active + waiting === 0);
      expect({ begun: recorder.begun.length, dead: recorder.dead }).toEqual({ begun: 1, dead: [] });
      expect([...new Set(faults.map(({ code }) => code))]).toEqual(["lease_lost"]);
      // Added again, it is a new job.
      await queues.add("web", toolJob({ isRepeatable: false }));
      await recorder.until(({ ended }) => ended.length === 2);
      expect(recorder.dead).toEqual([]);
    },
  );
});
