import { setTimeout as delay } from "node:timers/promises";
import type { Cluster, Redis } from "ioredis";
import { backoffDelay } from "../base/index.ts";
import { InvariantError, StoreUnavailableError, UnsupportedError } from "../errors/index.ts";
import { isWorthRepeating, nodeErrorOf, translated } from "./redis-errors.ts";
import type { RedisClient, RedisLocation } from "./redis-location.ts";

const pauses = { baseMs: 20, capMs: 250 };
/** The last attempt has at least this part of the whole time. */
const LAST_PART = 1 / 20;

/** A component that uses Redis. */
export interface RedisUser {
  readonly place: RedisLocation;
  /** How long a command may take, including retries, in milliseconds. */
  readonly timeoutMs: number;
  /** The component's name in errors: "the stores". */
  readonly name: string;
  /** Beginning of the error message if `ioredis` is missing: "Redis stores need". */
  readonly needing: string;
  /** Checks the servers once; rejects if they are unsuitable. */
  readonly check: (client: RedisClient) => Promise<void>;
}

/** A connection that other components of this process may share, and the prefix of its keys. */
export interface SharedLink {
  readonly link: RedisLink;
  readonly prefix: string;
}

const sharedLink = Symbol("troupe.redis");

/** Attaches a connection to an object, so that other components can share it. Copies of the object keep it. */
export function withSharedLink<Owner extends object>(owner: Owner, shared: SharedLink): Owner {
  return { ...owner, [sharedLink]: shared };
}

/** The connection of an object, or `undefined` if it has none. */
export function sharedLinkOf(owner: object): SharedLink | undefined {
  return (owner as { readonly [sharedLink]?: SharedLink })[sharedLink];
}

/**
 * The connection to Redis.
 * Owns: the connection for commands, waiting for it and resending commands. Does not own: the meaning of commands.
 *
 * Invariants
 * 1. Every command ends within `timeoutMs`: with its answer, or with an error of this package.
 * 2. A command may be applied twice, so callers send only idempotent ones.
 * 3. Nothing is buffered: a command that cannot be sent fails at once, and is retried until its time limit.
 */
export class RedisLink {
  readonly timeoutMs: number;
  readonly #user: RedisUser;
  #client: Promise<RedisClient> | undefined;
  #check: Promise<void> | undefined;
  #readiness: Promise<void> | undefined;
  /** The last error of the connection. */
  #failure: unknown;
  #isClosed = false;

  constructor(user: RedisUser) {
    this.#user = user;
    this.timeoutMs = user.timeoutMs;
  }

  /** `repeat` is the number of earlier attempts. */
  async run<T>(command: (client: RedisClient, repeat: number) => Promise<T>): Promise<T> {
    const end = performance.now() + this.timeoutMs;
    for (let repeat = 0; ; repeat += 1) {
      try {
        const client = await this.#ready(end);
        await this.#checked(client, end);
        return await within(end - performance.now(), command(client, repeat));
      } catch (error) {
        const pause = 1 + backoffDelay(repeat + 1, Math.random(), pauses);
        // An attempt with less time would probably get no answer, which hides why the earlier ones failed.
        const isLate = performance.now() + pause + this.timeoutMs * LAST_PART >= end;
        if (this.#isClosed || !isWorthRepeating(error) || isLate) throw translated(error, this.#user.name);
        await delay(pause);
      }
    }
  }

  /** Opens another connection; the caller closes it. */
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
    if (this.#isClosed) throw new InvariantError(`${this.#user.name} are closed`);
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

  /** All waiting commands share one promise. */
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
    // Waiting does not help if the server refuses the credentials.
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

function tooLate(): StoreUnavailableError {
  return new StoreUnavailableError("Redis did not answer in time", { details: { code: "ETIMEDOUT" } });
}

/** Rejects with `StoreUnavailableError` if the work takes longer than `ms` milliseconds; its later result is ignored. */
export async function within<T>(ms: number, work: Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(tooLate()), Math.max(0, ms));
  try {
    return await Promise.race([work, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * A prompt connection rejects commands that it cannot send now; a patient one keeps them until it can send them, as queue workers
 * require.
 */
type Manner = "prompt" | "patient";

interface ConnectOptions {
  readonly place: RedisLocation;
  /** Time limit for connecting, and on a prompt connection for each command; in milliseconds. */
  readonly timeoutMs: number;
  readonly manner: Manner;
  /** Beginning of the error message if `ioredis` is missing: "Redis stores need". */
  readonly needing: string;
}

/** Creates a connection with the settings of `place`. A prompt one connects on demand, a patient one at once; both reconnect. */
async function connect({ place, timeoutMs, manner, needing }: ConnectOptions): Promise<RedisClient> {
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
      redisOptions: { ...redisOptions, ...ofNodes },
    });
  } else if ("nodes" in place.client) {
    client = place.client.duplicate([], { ...ofCluster, redisOptions: ofNodes });
  } else client = place.client.duplicate(ofServer);
  // The commands that fail report the error.
  client.on("error", () => undefined);
  return client;
}

/** Closes a connection in any state; its pending commands fail. */
export function letGo(client: RedisClient, disconnect: () => void = () => client.disconnect()): void {
  // Between two attempts to connect, disconnecting alone would not end the client.
  if (client.status === "reconnecting") client.connect().catch(() => undefined);
  disconnect();
}

/** A prompt connection does not retry, because `RedisLink` does all waiting and retrying. */
function nodeSettings(manner: Manner, timeoutMs: number) {
  const common = {
    protocol: 2,
    // A given client may be configured for other reply types; the scripts rely on these.
    stringNumbers: false,
    replyMapping: "legacy",
    keyPrefix: "",
    connectTimeout: timeoutMs,
    disconnectTimeout: Math.min(timeoutMs, 500),
  } as const;
  if (manner === "patient") return { ...common, maxRetriesPerRequest: null };
  return {
    ...common,
    autoResendUnfulfilledCommands: false,
    // Subscribers resubscribe themselves; the client's own attempt would reject unhandled if the connection breaks again.
    autoResubscribe: false,
    maxRetriesPerRequest: 0,
    socketTimeout: timeoutMs,
  };
}

/** Short, so that work continues soon after Redis is back. */
function reconnectDelay(attempt: number): number {
  return Math.min(20 * attempt, 500);
}

async function loaded(needing: string): Promise<{
  readonly Cluster: typeof Cluster;
  readonly Redis: typeof Redis;
}> {
  try {
    return await import("ioredis");
  } catch (error) {
    throw new UnsupportedError(`${needing} the package "ioredis": npm install ioredis`, { cause: error });
  }
}
