import { setTimeout as delay } from "node:timers/promises";
import type * as Bullmq from "bullmq";
import type { Cluster, Redis } from "ioredis";
import { backoffDelay } from "../base/index.ts";
import { InvalidInputError, InvariantError, StoreUnavailableError, UnsupportedError } from "../errors/index.ts";
import { isWorthRepeating, translated } from "./bullmq-errors.ts";
import type { CheckedOptions, RedisClient } from "./bullmq-options.ts";

const pauses = { baseMs: 20, capMs: 250 };

/**
 * The ways to Redis.
 * Owns: the connections, and sending again. Does not own: what is sent.
 * 1. What is sent by `run` ends within `timeoutMs`, and may be applied twice: callers send only what comes to the same then.
 * 2. Workers have a connection that waits for Redis, however long it is away.
 */
export class BullmqConnection {
  readonly #options: CheckedOptions;
  #prompt: Promise<RedisClient> | undefined;
  #patient: Promise<RedisClient> | undefined;
  #check: Promise<void> | undefined;
  #readiness: Promise<void> | undefined;
  #isClosed = false;

  constructor(options: CheckedOptions) {
    this.#options = options;
  }

  /** The package `bullmq`, loaded when it is needed first. */
  async package(): Promise<typeof Bullmq> {
    try {
      return await import("bullmq");
    } catch (error) {
      throw new UnsupportedError('BullMQ queues need the package "bullmq": npm install bullmq', { cause: error });
    }
  }

  /** Throws the package's own errors, none of which shows an address or a password. */
  async run<T>(command: (client: RedisClient) => Promise<T>): Promise<T> {
    const { timeoutMs } = this.#options;
    const end = performance.now() + timeoutMs;
    for (let attempt = 1; ; attempt += 1) {
      try {
        const client = await this.#ready(end);
        return await within(end - performance.now(), command(client));
      } catch (error) {
        const pause = 1 + backoffDelay(attempt, Math.random(), pauses);
        if (this.#isClosed || !isWorthRepeating(error) || performance.now() + pause >= end) throw translated(error);
        await delay(pause);
      }
    }
  }

  /** For workers: commands wait in it until Redis is there. */
  async patient(): Promise<RedisClient> {
    if (this.#isClosed) throw new InvariantError("the queues were closed, and then used");
    this.#patient ??= connect(this.#options, "patient");
    return this.#patient;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const client of [this.#prompt, this.#patient]) {
      (await client?.catch(() => undefined))?.disconnect();
    }
  }

  async #ready(end: number): Promise<RedisClient> {
    if (this.#isClosed) throw new InvariantError("the queues were closed, and then used");
    if (!this.#prompt) {
      this.#prompt = connect(this.#options, "prompt");
      this.#prompt.catch(() => (this.#prompt = undefined));
    }
    const client = await this.#prompt;
    if (client.status !== "ready") await within(end - performance.now(), this.#untilReady(client));
    this.#check ??= checkPolicy(client);
    await within(
      end - performance.now(),
      this.#check.catch((error: unknown) => {
        this.#check = undefined;
        throw error;
      }),
    );
    return client;
  }

  /** One promise for all who wait. */
  #untilReady(client: RedisClient): Promise<void> {
    if (client.status === "wait" || client.status === "end") client.connect().catch(() => undefined);
    this.#readiness ??= new Promise((resolve) => {
      client.once("ready", () => {
        this.#readiness = undefined;
        resolve();
      });
    });
    return this.#readiness;
  }
}

/** One refuses what it cannot send now; the other keeps it until it can, which is what workers need. */
type Manner = "prompt" | "patient";

async function connect({ where, timeoutMs }: CheckedOptions, manner: Manner): Promise<RedisClient> {
  const { Cluster, Redis } = await loaded();
  const prompt = { maxRetriesPerRequest: 0, autoResendUnfulfilledCommands: false, socketTimeout: timeoutMs };
  const ofNodes = {
    protocol: 2,
    keyPrefix: "",
    connectTimeout: timeoutMs,
    disconnectTimeout: Math.min(timeoutMs, 500),
    ...(manner === "prompt" ? prompt : { maxRetriesPerRequest: null }),
  } as const;
  const enableOfflineQueue = manner === "patient";
  const ofServer = { ...ofNodes, enableOfflineQueue, retryStrategy: reconnectDelay };
  const ofCluster = {
    enableOfflineQueue,
    keyPrefix: "",
    scaleReads: "master",
    slotsRefreshTimeout: timeoutMs,
    clusterRetryStrategy: reconnectDelay,
  } as const;
  let client: RedisClient;
  if ("url" in where) client = new Redis(where.url, ofServer);
  else if ("nodes" in where) {
    const { redisOptions, ...others } = where.options;
    client = new Cluster([...where.nodes], {
      ...others,
      ...ofCluster,
      redisOptions: { ...redisOptions, ...ofNodes, replyMapping: "legacy" },
    });
  } else if ("slots" in where.client) {
    client = where.client.duplicate([], { ...ofCluster, redisOptions: ofNodes });
  } else client = where.client.duplicate(ofServer);
  // What goes wrong is told to those whose commands it stops.
  client.on("error", () => undefined);
  return client;
}

/** Short, so that a worker works again soon after Redis does. */
function reconnectDelay(attempt: number): number {
  return Math.min(20 * attempt, 500);
}

async function loaded(): Promise<{ readonly Cluster: typeof Cluster; readonly Redis: typeof Redis }> {
  try {
    return await import("ioredis");
  } catch (error) {
    throw new UnsupportedError('BullMQ queues need the package "ioredis": npm install ioredis', { cause: error });
  }
}

/** Throws `InvalidInputError` for a Redis that throws jobs away when its memory is full. */
async function checkPolicy(client: RedisClient): Promise<void> {
  const servers = "slots" in client ? client.nodes("master") : [client];
  for (const server of servers) {
    const policy = /^maxmemory_policy:(\S+)/m.exec(await server.info("memory"))?.[1];
    if (policy === undefined || policy === "noeviction") continue;
    throw new InvalidInputError(
      `Redis throws data away when its memory is full (maxmemory-policy is ${policy}), and with it jobs; set maxmemory-policy noeviction`,
    );
  }
}

/** Rejects with `StoreUnavailableError` when the work takes longer; what comes of it later is ignored. */
export async function within<T>(ms: number, work: Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(
    () => late.reject(new StoreUnavailableError("Redis did not answer the queues in time")),
    Math.max(0, ms),
  );
  try {
    return await Promise.race([work, late.promise]);
  } finally {
    clearTimeout(timer);
    work.catch(() => undefined);
  }
}
