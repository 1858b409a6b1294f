import type { Cluster, ClusterNode, ClusterOptions, Redis } from "ioredis";
import { anyRule, listRule, optionsRule, portRule, ruleOf } from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";

export type RedisClient = Redis | Cluster;

/** The address of Redis: one of `url`, `client` and `cluster`. */
export interface RedisLocationOptions {
  /**
   * `redis://[[user]:password@]host[:port][/database]`, `rediss://` for TLS. Default: none; one of `url`, `client` and `cluster` is
   * required.
   */
  readonly url?: string | undefined;
  /** An `ioredis` client, single or cluster; connections are created with its settings. Default: none. */
  readonly client?: RedisClient | undefined;
  /** Some nodes of a cluster, and other options of `ioredis`. Default: none. */
  readonly cluster?:
    | { readonly nodes: readonly ClusterNode[]; readonly options?: ClusterOptions | undefined }
    | undefined;
}

export type RedisLocation =
  | { readonly url: string }
  | { readonly client: RedisClient }
  | { readonly nodes: readonly ClusterNode[]; readonly options: ClusterOptions };

/** The option rules of all components that use Redis. A URL may contain a password, so it is never shown. */
export const redisLocationRules = {
  url: (value: unknown, where: string): string => {
    if (typeof value === "string") return value;
    throw new InvalidInputError(`${where} is of type ${value === null ? "null" : typeof value}; expected a text`);
  },
  client: portRule("a client of ioredis", ["duplicate", "disconnect"]),
  cluster: optionsRule<NonNullable<RedisLocationOptions["cluster"]>>({
    rules: {
      nodes: listRule("a list of nodes", anyRule),
      options: ruleOf("an object", (value) => typeof value === "object" && value !== null && !Array.isArray(value)),
    },
    needed: ["nodes"],
  }),
} as const;

/**
 * Throws `InvalidInputError` unless exactly one location is given; messages do not contain the URL. `taker` is the function whose options
 * are checked.
 */
export function checkedRedisLocation(taker: string, { url, client, cluster }: RedisLocationOptions): RedisLocation {
  const given = [url, client, cluster].filter((one) => one !== undefined);
  if (given.length !== 1) {
    throw new InvalidInputError(`${taker} takes one of url, client and cluster; ${given.length} are given`);
  }
  if (client !== undefined) return { client };
  if (cluster !== undefined) {
    if (cluster.nodes.length === 0) throw new InvalidInputError("cluster.nodes is empty; expected at least one node");
    return { nodes: cluster.nodes, options: cluster.options ?? {} };
  }
  const parsed = url !== undefined && URL.canParse(url) ? new URL(url) : undefined;
  const isAddress = parsed && ["redis:", "rediss:"].includes(parsed.protocol) && parsed.hostname !== "";
  if (url !== undefined && isAddress && /^(\/\d*)?$/.test(parsed.pathname)) return { url };
  throw new InvalidInputError(
    "url: invalid Redis URL; expected redis://[[user]:password@]host[:port][/database] or rediss://…",
  );
}
