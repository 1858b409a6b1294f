import { setTimeout as delay } from "node:timers/promises";
import type { Cluster, Redis } from "ioredis";
import { backoffDelay } from "../base/index.ts";
import { InvariantError, StoreUnavailableError, UnsupportedError } from "../errors/index.ts";
import { checkServers } from "./redis-boot-check.ts";
import { isMissingScript, isWorthRepeating, nodeErrorOf, translated } from "./redis-errors.ts";
import {
  type CheckedOptions,
  clientSettings,
  nodeSettings,
  type RedisClient,
  reconnectDelay,
} from "./redis-options.ts";
import type { Script } from "./redis-script.ts";

const pauses = { baseMs: 20, capMs: 250 };

/**
 * The way to Redis.
 * Owns: the connection for commands, waiting for it and sending again. Does not own: what the commands mean.
 *
 * Invariants
 * 1. Every command ends within `timeoutMs`: with its answer, or with an error in the package's own words.
 * 2. What is sent here may be applied twice: callers send only what comes to the same then.
 * 3. Nothing is kept for later: a command that cannot be written now is refused now, and tried again until its time is over.
 */
export class RedisConnection {
  readonly timeoutMs: number;
  readonly #options: CheckedOptions;
  #client: Promise<RedisClient> | undefined;
  #check: Promise<void> | undefined;
  #readiness: Promise<void> | undefined;
  /** Why there is no connection, as far as it is known. */
  #failure: unknown;
  #isClosed = false;

  constructor(options: CheckedOptions) {
    this.#options = options;
    this.timeoutMs = options.timeoutMs;
  }

  /** `repeat` counts how often it was sent before. */
  async run<T>(command: (client: RedisClient, repeat: number) => Promise<T>): Promise<T> {
    const end = performance.now() + this.timeoutMs;
    for (let repeat = 0; ; repeat += 1) {
      try {
        const client = await this.#ready(end);
        await this.#checked(client, end);
        return await within(end, command(client, repeat));
      } catch (error) {
        const pause = 1 + backoffDelay(repeat + 1, Math.random(), pauses);
        if (this.#isClosed || !isWorthRepeating(error) || performance.now() + pause >= end) throw translated(error);
        await delay(pause);
      }
    }
  }

  async script(script: Script, keys: readonly string[], args: readonly (string | number)[]): Promise<unknown> {
    return this.run((client) => evaluate(client, script, keys, args));
  }

  /** A further connection, for what blocks a connection; whoever asks for it ends it. */
  async another(): Promise<RedisClient> {
    return connect(this.#options);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const client = await this.#client?.catch(() => undefined);
    client?.disconnect();
  }

  async #ready(end: number): Promise<RedisClient> {
    if (this.#isClosed) throw new InvariantError("the stores were closed, and then used");
    if (!this.#client) {
      this.#client = connect(this.#options);
      this.#client.then(
        (client) => client.on("error", (error: unknown) => (this.#failure = error)),
        () => (this.#client = undefined),
      );
    }
    const client = await this.#client;
    if (client.status !== "ready") {
      await within(end, this.#untilReady(client)).catch((error: unknown) => {
        throw this.#failure === undefined ? error : translated(this.#failure);
      });
    }
    return client;
  }

  /** One promise for all who wait. */
  #untilReady(client: RedisClient): Promise<void> {
    if (client.status === "wait" || client.status === "end") client.connect().catch(() => undefined);
    if (this.#readiness) return this.#readiness;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const end = (): void => {
      client.off("ready", onReady);
      client.off("error", onError);
      this.#readiness = undefined;
    };
    const onReady = (): void => {
      end();
      this.#failure = undefined;
      resolve();
    };
    // Where the server lets nobody in who comes like this, waiting does not help.
    const onError = (error: unknown): void => {
      if (isWorthRepeating(nodeErrorOf(error))) return;
      end();
      reject(error);
    };
    client.on("ready", onReady);
    client.on("error", onError);
    promise.catch(() => undefined);
    this.#readiness = promise;
    return promise;
  }

  #checked(client: RedisClient, end: number): Promise<void> {
    if (!this.#check) {
      this.#check = within(end, checkServers(client));
      this.#check.catch(() => (this.#check = undefined));
    }
    return this.#check;
  }
}

/** Runs a script; one that the server does not know, or has forgotten, is sent as a whole. */
export async function evaluate(
  client: RedisClient,
  { sha, text }: Script,
  keys: readonly string[],
  args: readonly (string | number)[],
): Promise<unknown> {
  try {
    return await client.evalsha(sha, keys.length, ...keys, ...args);
  } catch (error) {
    if (!isMissingScript(error)) throw error;
    return client.eval(text, keys.length, ...keys, ...args);
  }
}

async function connect({ where, timeoutMs }: CheckedOptions): Promise<RedisClient> {
  const { Cluster, Redis } = await loaded();
  const ofNodes = nodeSettings(timeoutMs);
  const ofServer = { ...ofNodes, ...clientSettings, retryStrategy: reconnectDelay };
  const ofCluster = {
    ...clientSettings,
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

async function loaded(): Promise<{ readonly Cluster: typeof Cluster; readonly Redis: typeof Redis }> {
  try {
    return await import("ioredis");
  } catch (error) {
    throw new UnsupportedError('Redis stores need the package "ioredis": npm install ioredis', { cause: error });
  }
}

async function within<T>(end: number, work: Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(
    () => late.reject(new StoreUnavailableError("Redis did not answer in time", { details: { code: "ETIMEDOUT" } })),
    Math.max(0, end - performance.now()),
  );
  try {
    return await Promise.race([work, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
