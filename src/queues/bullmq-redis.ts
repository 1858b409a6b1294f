import type { Job as BullJob, Queue, Worker } from "bullmq";
import { InvalidInputError, InvariantError, TroupeError } from "../errors/index.ts";
import {
  checkServers,
  hasAnswered,
  letGo,
  networkCode,
  type RedisClient,
  RedisLink,
  type RedisLocation,
  translated,
} from "../redis/index.ts";
import {
  type BullmqPackage,
  type BullmqServer,
  loadBullmq,
  QUEUES,
  type QueueSettings,
  type RunOfJob,
  type WorkerSettings,
} from "./bullmq-server.ts";
import type { Envelope } from "./jobs.ts";

/**
 * Registers a worker for a period from now, by the clock of Redis, and removes expired entries.
 * KEYS: the worker set of the queue, scored by expiry time. ARGV: the worker, milliseconds.
 */
const ENTER = `
local time = redis.call("TIME")
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call("ZREMRANGEBYSCORE", KEYS[1], "-inf", now)
redis.call("ZADD", KEYS[1], now + ARGV[2], ARGV[1])
local last = redis.call("ZRANGE", KEYS[1], -1, -1, "WITHSCORES")
redis.call("PEXPIREAT", KEYS[1], string.format("%.0f", last[2]))
return 0`;

/** KEYS: as above. Returns the number of entries that have not expired. */
const COUNT = `
local time = redis.call("TIME")
local now = time[1] * 1000 + math.floor(time[2] / 1000)
return redis.call("ZCOUNT", KEYS[1], "(" .. string.format("%.0f", now), "+inf")`;

const WORKERS = "workers";

/**
 * The queues in Redis.
 *
 * Invariants
 * 1. All keys of one queue share one hash tag, so they are in one slot of a cluster; other queues are in other slots.
 * 2. This package's own keys have names that BullMQ never uses (`#ownKey`).
 */
export class BullmqRedis extends RedisLink implements BullmqServer {
  readonly name = "Redis";
  readonly #prefix: string;
  #patient: Promise<RedisClient> | undefined;
  /** Connections on which workers wait for their next job, one per worker. */
  readonly #waiting: RedisClient[] = [];

  constructor({
    place,
    timeoutMs,
    prefix,
  }: {
    readonly place: RedisLocation;
    readonly timeoutMs: number;
    readonly prefix: string;
  }) {
    super({ place, timeoutMs, name: QUEUES, needing: "BullMQ queues need", check: checkFitness });
    this.#prefix = prefix;
  }

  async package(): Promise<BullmqPackage> {
    return await loadBullmq("ioredis");
  }

  async queue(name: string, { eventsKept, isPatient = false }: QueueSettings): Promise<Queue> {
    const { Queue } = await this.package();
    const connection = isPatient ? await this.#patientClient() : await this.run(async (client) => client);
    const streams = { events: { maxLen: eventsKept } };
    const queue = new Queue(name, { connection, prefix: this.#prefixOf(name), streams });
    // The caller of a command gets the error; the event is not needed.
    queue.on("error", () => undefined);
    if (!isPatient) await queue.waitUntilReady();
    return queue;
  }

  async worker(
    name: string,
    process: (job: BullJob<Envelope>, token?: string) => Promise<void>,
    { onError, ...settings }: WorkerSettings,
  ): Promise<Worker<Envelope, void>> {
    const { Worker } = await this.package();
    const connection = await this.#patientClient();
    const worker = new Worker<Envelope, void>(name, process, { ...settings, connection, prefix: this.#prefixOf(name) });
    worker.on("error", onError);
    return worker;
  }

  async giveBack(job: BullJob<Envelope>, token: string): Promise<void> {
    await job.moveToWait(token);
  }

  encoded(data: Envelope): unknown {
    return data;
  }

  decoded(data: unknown): unknown {
    return data;
  }

  translated(error: unknown): TroupeError {
    const known = translated(error, QUEUES);
    if (known instanceof TroupeError) return known;
    return new InvariantError(`the queues failed: ${known instanceof Error ? known.name : typeof known}`);
  }

  isOfConnection(error: unknown): boolean {
    return hasAnswered(error) || networkCode(error) !== undefined;
  }

  async register(queues: readonly string[]): Promise<void> {
    await this.run((client) => client.sadd(this.#namesKey, ...queues));
  }

  async names(): Promise<string[]> {
    return await this.run((client) => client.smembers(this.#namesKey));
  }

  async enter(queue: string, worker: string, ms: number, isOver: () => boolean): Promise<void> {
    await this.run(async (client) => {
      // A late renewal must not restore an entry that was removed.
      if (!isOver()) await client.eval(ENTER, 1, this.#ownKey(queue, WORKERS), worker, ms);
    });
  }

  async leave(queue: string, worker: string): Promise<void> {
    await this.run((client) => client.zrem(this.#ownKey(queue, WORKERS), worker));
  }

  async workers(queue: string): Promise<number> {
    return Number(await this.run((client) => client.eval(COUNT, 1, this.#ownKey(queue, WORKERS))));
  }

  async askToStop(queue: string, run: RunOfJob, reason: string, seconds: number): Promise<void> {
    await this.run((client) => client.set(this.#stopKey(queue, run), reason, "EX", seconds));
  }

  async stopsAsked(queue: string, runs: readonly RunOfJob[]): Promise<Map<string, string>> {
    const keys = runs.map((run) => this.#stopKey(queue, run));
    const found = await this.run((client) => client.mget(keys));
    return new Map(
      runs.flatMap(({ jobId }, at) => (typeof found[at] === "string" ? [[jobId, found[at]] as const] : [])),
    );
  }

  async noteCanary(name: string, at: number): Promise<void> {
    await this.run((client) => client.zadd(this.#canaries, at, name));
  }

  async forgetCanary(name: string): Promise<void> {
    await this.run((client) => client.zrem(this.#canaries, name));
  }

  async oldCanaries(until: number): Promise<string[]> {
    return await this.run((client) => client.zrangebyscore(this.#canaries, "-inf", until, "LIMIT", 0, 10));
  }

  override async close(): Promise<void> {
    await super.close();
    const client = await this.#patient?.catch(() => undefined);
    for (const one of this.#waiting) one.disconnect();
    if (client) letGo(client);
  }

  /** A sorted set of the canary queues, by the time of their last canary. */
  get #canaries(): string {
    return `{${this.#prefix}}:canaries`;
  }

  get #namesKey(): string {
    return `{${this.#prefix}}:queues`;
  }

  #prefixOf(queue: string): string {
    return `{${this.#prefix}${queue}}`;
  }

  /** A key of this package in the slot of the queue. BullMQ's keys continue with the name of the queue and a colon instead. */
  #ownKey(queue: string, part: string): string {
    return `${this.#prefixOf(queue)}-troupe:${part}`;
  }

  #stopKey(queue: string, { jobId, addedAt }: RunOfJob): string {
    return this.#ownKey(queue, `cancel:${addedAt}:${jobId}`);
  }

  /** A connection for workers: it keeps commands until Redis is reachable. */
  async #patientClient(): Promise<RedisClient> {
    this.assertOpen();
    this.#patient ??= this.#connectPatient();
    return this.#patient;
  }

  async #connectPatient(): Promise<RedisClient> {
    const client = await this.another("patient");
    const duplicate: (...given: never[]) => RedisClient = client.duplicate.bind(client);
    // bullmq creates these connections itself and cannot close them while Redis is unreachable; they would keep the process alive.
    const duplicateHeld = (...given: never[]): RedisClient => {
      const another = duplicate(...given);
      const disconnect = another.disconnect.bind(another);
      another.disconnect = (isTemporary) => {
        if (isTemporary) disconnect(isTemporary);
        else letGo(another, disconnect);
      };
      this.#waiting.push(another);
      return another;
    };
    return Object.assign(client, { duplicate: duplicateHeld });
  }
}

async function checkFitness(client: RedisClient): Promise<void> {
  const servers = await checkServers(client, { user: QUEUES, atStake: "jobs" });
  if (servers.every(({ facts }) => facts !== undefined)) return;
  throw new InvalidInputError(
    "the Redis user may not call INFO, which the queues need to check the server; allow it (ACL SETUSER name +info)",
  );
}
