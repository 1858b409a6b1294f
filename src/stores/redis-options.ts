import type { Cluster, ClusterNode, ClusterOptions, Redis } from "ioredis";
import { InvalidInputError } from "../errors/index.ts";

export type RedisClient = Redis | Cluster;

/** Where Redis is: one of `url`, `client` and `cluster`. */
export interface RedisStoresOptions {
  /** `redis://[[user]:password@]host[:port][/database]`, `rediss://` for TLS. */
  readonly url?: string | undefined;
  /** A client of `ioredis`, single or cluster, whose settings are used: connections of our own are made like it. */
  readonly client?: RedisClient | undefined;
  /** Nodes of a cluster to begin with, and what `ioredis` takes beside them. */
  readonly cluster?:
    | { readonly nodes: readonly ClusterNode[]; readonly options?: ClusterOptions | undefined }
    | undefined;
  /** What all keys begin with; any text without braces, `"troupe:"` by default. */
  readonly prefix?: string | undefined;
  /** How long a command may take, all its attempts together, before it fails; in milliseconds, 5,000 by default. */
  readonly timeoutMs?: number | undefined;
  /**
   * Seconds after which a tree goes away: counted from its last change, while nobody holds one of its agents and no turn is
   * open. Default: never.
   */
  readonly ttl?: number | undefined;
}

export interface CheckedOptions {
  readonly where:
    | { readonly url: string }
    | { readonly client: RedisClient }
    | { readonly nodes: readonly ClusterNode[]; readonly options: ClusterOptions };
  readonly prefix: string;
  readonly timeoutMs: number;
  readonly ttl: number | undefined;
}

export const DEFAULT_PREFIX = "troupe:";
const DEFAULT_TIMEOUT_MS = 5000;

/** Throws `InvalidInputError` for what cannot work, in words that do not show what a URL holds. */
export function checkedOptions(options: RedisStoresOptions): CheckedOptions {
  const { url, client, cluster, prefix = DEFAULT_PREFIX, timeoutMs = DEFAULT_TIMEOUT_MS, ttl } = options;
  const given = [url, client, cluster].filter((one) => one !== undefined);
  if (given.length !== 1) {
    throw new InvalidInputError(`redisStores takes one of url, client and cluster; ${given.length} are given`);
  }
  if (!(Number.isSafeInteger(timeoutMs) && timeoutMs > 0)) {
    throw new InvalidInputError(`timeoutMs is ${String(timeoutMs)}; it takes whole milliseconds above 0`);
  }
  if (ttl !== undefined && !(Number.isSafeInteger(ttl) && ttl > 0)) {
    throw new InvalidInputError(`ttl is ${String(ttl)}; it takes whole seconds above 0`);
  }
  return { where: whereOf(options), prefix, timeoutMs, ttl };
}

function whereOf({ url, client, cluster }: RedisStoresOptions): CheckedOptions["where"] {
  if (client !== undefined) return { client };
  if (cluster !== undefined) {
    if (cluster.nodes.length === 0) throw new InvalidInputError("cluster.nodes is empty; it takes at least one node");
    return { nodes: cluster.nodes, options: cluster.options ?? {} };
  }
  const parsed = url !== undefined && URL.canParse(url) ? new URL(url) : undefined;
  const isAddress = parsed && ["redis:", "rediss:"].includes(parsed.protocol) && parsed.hostname !== "";
  if (url !== undefined && isAddress && /^(\/\d*)?$/.test(parsed.pathname)) return { url };
  throw new InvalidInputError(
    "url is no address of Redis; it takes redis://[[user]:password@]host[:port][/database] or rediss://…",
  );
}

/** Of every connection of ours. What cannot be answered is refused at once: waiting and trying again is done in one place. */
export function nodeSettings(timeoutMs: number) {
  return {
    protocol: 2,
    keyPrefix: "",
    autoResendUnfulfilledCommands: false,
    // Whoever listens subscribes again: the client's own attempt rejects unheard when the connection breaks once more.
    autoResubscribe: false,
    maxRetriesPerRequest: 0,
    connectTimeout: timeoutMs,
    socketTimeout: timeoutMs,
    disconnectTimeout: Math.min(timeoutMs, 500),
  } as const;
}

/** Of the connection that commands are given to: one server's, or a whole cluster's. */
export const clientSettings = { lazyConnect: true, enableOfflineQueue: false } as const;

export function reconnectDelay(attempt: number): number {
  return Math.min(20 * attempt, 500);
}
