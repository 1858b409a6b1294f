import { Queue } from "bullmq";
import type { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { BullmqQueuesOptions } from "../../src/queues/bullmq.ts";
import { seal, createSigner, toolJobIdOf } from "../../src/queues/jobs.ts";
import type { Queues } from "../../src/queues/index.ts";
import { type CountOfQueue, countsOf, Recorder, toolJob } from "../contracts/queues-fixtures.ts";
import { ownQueuePrefix, queuesOn } from "../support/bullmq-queues.ts";
import { RedisServer, redisProgram } from "../support/redis-server.ts";

const secrets = [{ id: "2026-11", secret: "a secret that the forger does not have" }];

/** Only the genuine job has run, and the others are recorded only in the dead letters. */
function allRefused(...messages: string[]) {
  const letters = messages.map((message) => ({
    job: null,
    code: "refused",
    message: expect.stringContaining(message),
  }));
  const count = messages.length;
  return { ran: ["genuine"], told: [], left: 0, refused: count, dead: count, letters: expect.arrayContaining(letters) };
}

describe.skipIf(!redisProgram)("a job that another program wrote to Redis", () => {
  let server: RedisServer;
  let redis: Redis;
  let options: BullmqQueuesOptions;
  let queues: Queues;
  let forger: Queue;
  let recorder: Recorder;
  beforeAll(async () => {
    server = await RedisServer.start({ isLogged: false });
    redis = server.client();
    redis.options.maxRetriesPerRequest = null;
  });
  afterAll(async () => {
    redis.disconnect();
    await server.stop();
  });
  beforeEach(() => {
    options = { prefix: ownQueuePrefix(), secrets };
    queues = queuesOn(server, options);
    forger = new Queue("web", { connection: redis, prefix: `{${options.prefix}web}` });
    recorder = new Recorder();
  });
  afterEach(async () => {
    await forger.close();
    await queues.close();
  });

  /** The outcome of a number of forged jobs, and of a genuine one added after them. */
  async function outcome(forged: number) {
    await queues.work(recorder.options(async () => "done"));
    await queues.add("web", toolJob({ callId: "genuine" }));
    await recorder.until(({ ended }) => ended.length === 1);
    // A job is counted as refused before its last attempt has ended.
    const isDone = ({ refused, active, waiting, delayed }: CountOfQueue) =>
      refused >= forged && active + waiting + delayed === 0;
    const count = await countsOf(queues, "web", isDone);
    const letters = await queues.deadLetters("web");
    return {
      ran: recorder.begun.map(({ job }) => job.kind === "tool" && job.callId),
      told: recorder.dead,
      left: count.waiting + count.delayed,
      refused: count.refused,
      dead: count.dead,
      letters: letters.map(({ job, cause: { code, message } }) => ({ job, code, message })),
    };
  }

  test("is refused if it is not signed, is signed with another secret, or is malformed", async () => {
    const job = { kind: "tool" as const, ...toolJob({ callId: "forged" }) };
    const jobId = toolJobIdOf(job);
    const ownKey = createSigner([{ id: "2026-11", secret: "a secret that the forger made up" }]);
    await forger.add("job", { version: 1, job }, { jobId });
    await forger.add("job", seal("web", job, ownKey), { jobId: `${jobId}a` });
    await forger.add("job", { shell: "rm -rf /" });
    await forger.add("job", null);
    await forger.add("job", { version: 1, job, signature: { keyId: "2026-11", mac: "" } }, { attempts: 50 });
    const forms = ["not a job of this version", "not a job of this version"];
    const signatures = ["it is not signed", "does not match its content", "does not match its content"];
    expect(await outcome(5)).toEqual(allRefused(...forms, ...signatures));
  });

  test("is refused if it was altered, or was signed for another queue or another id", async () => {
    const job = { kind: "tool" as const, ...toolJob({ callId: "mine" }) };
    const signed = seal("web", job, createSigner(secrets));
    await queues.add("web", toolJob({ callId: "altered" }));
    const key = `{${options.prefix}web}:web:${toolJobIdOf(toolJob({ callId: "altered" }))}`;
    const data = await redis.hget(key, "data");
    await redis.hset(key, "data", (data ?? "").replace("desk-7", "desk-8"));
    await forger.add("job", seal("browser", job, createSigner(secrets)), { jobId: toolJobIdOf(job) });
    await forger.add("job", signed, { jobId: `${toolJobIdOf(job)}-again` });
    const messages = ["does not match its content", "does not match its content", "under the id of another job"];
    expect(await outcome(3)).toEqual(allRefused(...messages));
  });

  test("does not block the genuine job, which can be added again", async () => {
    const job = toolJob({ callId: "wanted" });
    const jobId = toolJobIdOf(job);
    await forger.add("job", { version: 1, job: { kind: "tool", ...job } }, { jobId });
    expect(await outcome(1)).toEqual(allRefused("it is not signed"));
    await queues.add("web", job);
    await recorder.until(({ ended }) => ended.length === 2);
    await countsOf(queues, "web", ({ active }) => active === 0);
    expect(recorder.begun.map(({ job: ran }) => ran.kind === "tool" && ran.callId)).toEqual(["genuine", "wanted"]);
    expect(await queues.deadLetters("web")).toMatchObject([{ job: null, cause: { code: "refused" } }]);
  });

  test("of a later version waits for a worker that knows it", async () => {
    const faults: string[] = [];
    const tried = Promise.withResolvers<void>();
    const onFault = ({ message }: Error): void => {
      faults.push(message);
      tried.resolve();
    };
    await queues.work({ ...recorder.options(async () => "done"), onFault });
    const job = toolJob({ callId: "newer" });
    const jobId = toolJobIdOf(job);
    await forger.add("job", { version: 2, job, how: "in a later format" }, { jobId, attempts: 20, backoff: 60_000 });
    await tried.promise;
    expect(faults).toEqual([
      'a job of queue "web" is left to another worker: its version is 2; this process supports 1',
    ]);
    const waits = await countsOf(queues, "web", ({ delayed, active }) => delayed === 1 && active === 0);
    expect(waits).toMatchObject({ dead: 0, refused: 0 });
    expect(await queues.cancel("web", job, "no more")).toBe("removed");
    expect({ begun: recorder.begun, dead: recorder.dead }).toEqual({ begun: [], dead: [] });
  });

  test("is refused in the end, and delays no other job, if it cannot be read", async () => {
    for (const field of ["data", "opts"]) {
      const job = await forger.add("job", {}, { jobId: `broken-${field}` });
      await redis.hset(forger.toKey(job.id ?? ""), field, '{"a":');
    }
    expect(await outcome(2)).toEqual(allRefused("not a job of this version", "not a job of this version"));
  });

  test("is accepted without a secret, but only if it matches the schema", async () => {
    const open = queuesOn(server, { ...options, secrets: undefined });
    const job = { kind: "tool" as const, ...toolJob({ callId: "unsigned" }) };
    await forger.add("job", { version: 1, job }, { jobId: toolJobIdOf(job) });
    await forger.add("job", { version: 1, job: { ...job, more: "x" } });
    await open.work(recorder.options(async () => "done"));
    await recorder.until(({ ended }) => ended.length === 1);
    expect(await countsOf(open, "web", ({ dead }) => dead === 1)).toMatchObject({ refused: 1 });
    await open.close();
  });

  test("keys can be replaced without refusing any job", async () => {
    const next = { id: "2026-12", secret: "the secret that comes after it" };
    const both = queuesOn(server, { ...options, secrets: [secrets[0] ?? next, next] });
    const turned = queuesOn(server, { ...options, secrets: [next, secrets[0] ?? next] });
    const after = queuesOn(server, { ...options, secrets: [next] });
    for (const [index, adding] of [queues, both, turned].entries()) {
      await adding.add("web", toolJob({ callId: `call-${index}` }));
    }
    await both.work(recorder.options(async () => "done"));
    await recorder.until(({ ended }) => ended.length === 3);
    await both.close();
    const last = new Recorder();
    await turned.add("web", toolJob({ callId: "last" }));
    await after.work(last.options(async () => "done"));
    await last.until(({ ended }) => ended.length === 1);
    expect(await after.counts(["web"])).toMatchObject([{ dead: 0, refused: 0 }]);
    await Promise.all([turned.close(), after.close()]);
  });
});
