import { setTimeout as delay } from "node:timers/promises";
import type { Cluster, Redis } from "ioredis";
import { backoffDelay } from "../base/index.ts";
import { InvariantError, StoreUnavailableError, UnsupportedError } from "../errors/index.ts";
import { isWorthRepeating, nodeErrorOf, translated } from "./redis-errors.ts";
import type { RedisClient, RedisPlace } from "./redis-place.ts";

const pauses = { baseMs: 20, capMs: 250 };

/** What goes to Redis, and what for. */
export interface RedisUser {
  readonly place: RedisPlace;
  /** How long a command may take with all its attempts, in milliseconds. */
  readonly timeoutMs: number;
  /** As errors name it: "the stores". */
  readonly name: string;
  /** What needs the package `ioredis`, as the error says where it is not there: "Redis stores need". */
  readonly needing: string;
  /** Looks once at the servers; rejects where they are not fit for the use. */
  readonly check: (client: RedisClient) => Promise<void>;
}

/**
 * The way to Redis.
 * Owns: the connection for commands, waiting for it and sending again. Does not own: what the commands mean.
 *
 * Invariants
 * 1. Every command ends within `timeoutMs`: with its answer, or with an error in the package's own words.
 * 2. What is sent here may be applied twice: callers send only what comes to the same then.
 * 3. Nothing is kept for later: a command that cannot be written now is refused now, and tried again until its time is over.
 */
export class RedisLink {
  readonly timeoutMs: number;
  readonly #user: RedisUser;
  #client: Promise<RedisClient> | undefined;
  #check: Promise<void> | undefined;
  #readiness: Promise<void> | undefined;
  /** Why there is no connection, as far as it is known. */
  #failure: unknown;
  #isClosed = false;

  constructor(user: RedisUser) {
    this.#user = user;
    this.timeoutMs = user.timeoutMs;
  }

  /** `repeat` counts how often it was sent before. */
  async run<T>(command: (client: RedisClient, repeat: number) => Promise<T>): Promise<T> {
    const end = performance.now() + this.timeoutMs;
    for (let repeat = 0; ; repeat += 1) {
      try {
        const client = await this.#ready(end);
        await this.#checked(client, end);
        return await within(end - performance.now(), command(client, repeat));
      } catch (error) {
        const pause = 1 + backoffDelay(repeat + 1, Math.random(), pauses);
        if (this.#isClosed || !isWorthRepeating(error) || performance.now() + pause >= end)
          throw translated(error, this.#user.name);
        await delay(pause);
      }
    }
  }

  /** A further connection; whoever asks for it ends it. */
  async another(manner: Manner = "prompt"): Promise<RedisClient> {
    this.assertOpen();
    return connect({ ...this.#user, manner });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const client = await this.#client?.catch(() => undefined);
    if (client) letGo(client);
  }

  assertOpen(): void {
    if (this.#isClosed) throw new InvariantError(`${this.#user.name} were closed, and then used`);
  }

  async #ready(end: number): Promise<RedisClient> {
    this.assertOpen();
    if (!this.#client) {
      this.#client = connect({ ...this.#user, manner: "prompt" });
      this.#client.then(
        (client) => client.on("error", (error: unknown) => (this.#failure = error)),
        () => (this.#client = undefined),
      );
    }
    const client = await this.#client;
    if (client.status !== "ready") {
      await within(end - performance.now(), this.#untilReady(client)).catch((error: unknown) => {
        throw this.#failure === undefined ? error : translated(this.#failure, this.#user.name);
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
      this.#check = within(end - performance.now(), this.#user.check(client));
      this.#check.catch(() => (this.#check = undefined));
    }
    return this.#check;
  }
}

/** Rejects with `StoreUnavailableError` when the work takes longer than so many milliseconds; what comes of it later is ignored. */
export async function within<T>(ms: number, work: Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(
    () => late.reject(new StoreUnavailableError("Redis did not answer in time", { details: { code: "ETIMEDOUT" } })),
    Math.max(0, ms),
  );
  try {
    return await Promise.race([work, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

/** A prompt connection refuses what it cannot send now; a patient one keeps it until it can, which is what queue workers need. */
export type Manner = "prompt" | "patient";

export interface ConnectOptions {
  readonly place: RedisPlace;
  /** For making a connection, and of a prompt one for each command; in milliseconds. */
  readonly timeoutMs: number;
  readonly manner: Manner;
  /** What needs the package `ioredis`, as the error says where it is not there: "Redis stores need". */
  readonly needing: string;
}

/** A connection of our own. It connects when it is told to, a patient one at once, and again whenever it has broken. */
export async function connect({ place, timeoutMs, manner, needing }: ConnectOptions): Promise<RedisClient> {
  const { Cluster, Redis } = await loaded(needing);
  const ofNodes = nodeSettings(manner, timeoutMs);
  const ofClient = manner === "prompt" ? ({ lazyConnect: true, enableOfflineQueue: false } as const) : {};
  const ofServer = { ...ofNodes, ...ofClient, retryStrategy: reconnectDelay };
  const ofCluster = {
    ...ofClient,
    keyPrefix: "",
    scaleReads: "master",
    slotsRefreshTimeout: timeoutMs,
    clusterRetryStrategy: reconnectDelay,
  } as const;
  let client: RedisClient;
  if ("url" in place) client = new Redis(place.url, ofServer);
  else if ("nodes" in place) {
    const { redisOptions, ...others } = place.options;
    client = new Cluster([...place.nodes], {
      ...others,
      ...ofCluster,
      redisOptions: { ...redisOptions, ...ofNodes, replyMapping: "legacy" },
    });
  } else if ("slots" in place.client) {
    client = place.client.duplicate([], { ...ofCluster, redisOptions: ofNodes });
  } else client = place.client.duplicate(ofServer);
  // What goes wrong is told to those whose commands it stops.
  client.on("error", () => undefined);
  return client;
}

/** Ends a connection for good, whatever it does at the moment; commands that wait in it fail. */
export function letGo(client: RedisClient, disconnect: () => void = () => client.disconnect()): void {
  // Between two attempts to connect there is nothing to break off, and the client would never say that it has ended.
  if (client.status === "reconnecting") client.connect().catch(() => undefined);
  disconnect();
}

/** What a prompt connection cannot answer it refuses at once: waiting and trying again is done in one place, by `RedisLink`. */
function nodeSettings(manner: Manner, timeoutMs: number) {
  const common = {
    protocol: 2,
    keyPrefix: "",
    connectTimeout: timeoutMs,
    disconnectTimeout: Math.min(timeoutMs, 500),
  } as const;
  if (manner === "patient") return { ...common, maxRetriesPerRequest: null };
  return {
    ...common,
    autoResendUnfulfilledCommands: false,
    // Whoever listens subscribes again: the client's own attempt rejects unheard when the connection breaks once more.
    autoResubscribe: false,
    maxRetriesPerRequest: 0,
    socketTimeout: timeoutMs,
  };
}

/** Short, so that work goes on soon after Redis does. */
function reconnectDelay(attempt: number): number {
  return Math.min(20 * attempt, 500);
}

async function loaded(needing: string): Promise<{ readonly Cluster: typeof Cluster; readonly Redis: typeof Redis }> {
  try {
    return await import("ioredis");
  } catch (error) {
    throw new UnsupportedError(`${needing} the package "ioredis": npm install ioredis`, { cause: error });
  }
}
