import { createId } from "../base/index.ts";
import { type BullmqConnection, translated, type CheckedOptions } from "./bullmq-connection.ts";
import type { BullmqKeyspace } from "./bullmq-keyspace.ts";
import type { WorkOptions } from "./ports.ts";

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

const PART = "workers";

/**
 * The registered workers of each queue, in Redis.
 * Owns: the entries of this process. Counting connections would not suffice: a frozen process keeps its connection, a cluster node sees
 * only its own connections, and listing them needs a permission that workers do not always have.
 * 1. An entry expires after `lockMs`; a living process renews it three times in that period.
 */
export class BullmqPresence {
  readonly #options: CheckedOptions;
  readonly #connection: BullmqConnection;
  readonly #keyspace: BullmqKeyspace;
  readonly #id = createId("worker");
  #queues: readonly string[] = [];
  #stopWaiting: () => void = () => undefined;
  #hasLeft = false;

  constructor(options: CheckedOptions, connection: BullmqConnection, keyspace: BullmqKeyspace) {
    this.#options = options;
    this.#connection = connection;
    this.#keyspace = keyspace;
  }

  /** Registers this process as a worker of these queues, until `leave()`. */
  async enter(queues: readonly string[], onFault: NonNullable<WorkOptions["onFault"]>): Promise<void> {
    this.#queues = queues;
    await this.#beat().catch((error: unknown) => onFault(translated(error)));
    this.#goOn(onFault);
  }

  async leave(): Promise<void> {
    this.#hasLeft = true;
    this.#stopWaiting();
    const left = this.#queues.map((queue) =>
      this.#connection.run((client) => client.zrem(this.#keyspace.ownKey(queue, PART), this.#id)),
    );
    await Promise.all(left);
  }

  async count(queue: string): Promise<number> {
    const key = this.#keyspace.ownKey(queue, PART);
    return Number(await this.#connection.run((client) => client.eval(COUNT, 1, key)));
  }

  #goOn(onFault: NonNullable<WorkOptions["onFault"]>): void {
    if (this.#hasLeft) return;
    const { clock, deathCheckMs, lockMs } = this.#options;
    this.#stopWaiting = clock.setDelay(Math.min(deathCheckMs, Math.floor(lockMs / 3)), () => {
      this.#beat()
        .catch((error: unknown) => onFault(translated(error)))
        .finally(() => this.#goOn(onFault));
    });
  }

  async #beat(): Promise<void> {
    const { lockMs } = this.#options;
    await this.#keyspace.register(this.#queues);
    const entered = this.#queues.map((queue) =>
      this.#connection.run(async (client) => {
        // A late renewal must not restore an entry that `leave()` removed.
        if (this.#hasLeft) return;
        await client.eval(ENTER, 1, this.#keyspace.ownKey(queue, PART), this.#id, lockMs);
      }),
    );
    await Promise.all(entered);
  }
}
