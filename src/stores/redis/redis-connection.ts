import { type OptionsSchema, optionsOf, textRule, wholeNumberRule } from "../../base/index.ts";
import { CorruptRecordError } from "../../errors/index.ts";
import {
  checkedRedisLocation,
  checkServers,
  isMissingScript,
  type RedisClient,
  RedisLink,
  type RedisLocation,
  type RedisLocationOptions,
  redisLocationRules,
  type ServerFacts,
  unlessRefused,
} from "../../redis/index.ts";
import { keepLayout, migrate } from "./redis-layout.ts";
import type { Script } from "./redis-scripts.ts";

/** The address of Redis (one of `url`, `client` and `cluster`) and how data is stored in it. */
export interface RedisStoresOptions extends RedisLocationOptions {
  /** Prefix of all keys: any text without braces. Default `"troupe:"`. */
  readonly prefix?: string | undefined;
  /** Time limit of a command, including retries, in milliseconds, from 1 to 2,000,000,000. Default 5,000. */
  readonly timeoutMs?: number | undefined;
  /**
   * Seconds after which a tree expires, counted from its last change, while none of its agents has an owner and no turn
   * is open. Default: never.
   */
  readonly ttl?: number | undefined;
}

export interface CheckedOptions {
  readonly place: RedisLocation;
  readonly prefix: string;
  readonly timeoutMs: number;
  readonly ttl: number | undefined;
}

const DEFAULT_PREFIX = "troupe:";
const DEFAULT_TIMEOUT_MS = 5000;
/** Node's timers are limited to 2³¹ - 1 ms. */
const LONGEST_TIMEOUT_MS = 2_000_000_000;

const redisOptionsSchema: OptionsSchema<RedisStoresOptions> = {
  rules: {
    ...redisLocationRules,
    prefix: textRule,
    timeoutMs: wholeNumberRule(1, LONGEST_TIMEOUT_MS),
    ttl: wholeNumberRule(1),
  },
  instead: { redis: "client", connection: "client", nodes: "cluster: { nodes }", ttlMs: "ttl" },
};

/** Throws `InvalidInputError` for invalid options; messages never contain the URL. */
export function checkedOptions(given: RedisStoresOptions): CheckedOptions {
  const options = optionsOf<RedisStoresOptions>(given, "redisStores()", redisOptionsSchema);
  const { prefix = DEFAULT_PREFIX, timeoutMs = DEFAULT_TIMEOUT_MS, ttl } = options;
  const place = checkedRedisLocation("redisStores", options);
  return { place, prefix, timeoutMs, ttl };
}

/** Connections to a single server that has all keys, so that a script may use any of them. */
const oneServers = new WeakSet<RedisClient>();

/** An argument of a script. */
type Argument = string | number;

/** The stores' connection to Redis. Owns: how scripts are sent. Does not own: the meaning of scripts. */
export class RedisConnection extends RedisLink {
  readonly #prefix: string;
  #isOneServer: boolean | undefined;

  constructor({ place, timeoutMs, prefix }: CheckedOptions) {
    const check = async (client: RedisClient): Promise<void> => {
      await checkDurability(client);
      await migrate(client, { prefix, timeoutMs });
    };
    super({ place, timeoutMs, name: "the stores", needing: "Redis stores need", check });
    this.#prefix = prefix;
  }

  /** Writes the number of the layout again if it was lost. */
  async keepLayout(): Promise<void> {
    await this.run((client) => keepLayout(client, this.#prefix));
  }

  /** Whether one script may use keys of different trees and indexes. `false` in a cluster, and if unknown. */
  async mayMixKeys(): Promise<boolean> {
    this.#isOneServer ??= await this.run(async (client) => oneServers.has(client));
    return this.#isOneServer;
  }

  script(script: Script, keys: readonly string[], args: readonly Argument[]): Promise<unknown> {
    return this.run((client) => evaluate(client, script, keys, args));
  }
}

/** Runs a script by its hash, or sends its text if the server does not have it. */
export async function evaluate(
  client: RedisClient,
  { sha, text }: Script,
  keys: readonly string[],
  args: readonly Argument[],
): Promise<unknown> {
  try {
    return await client.evalsha(sha, keys.length, ...keys, ...args);
  } catch (error) {
    if (!isMissingScript(error)) throw error;
    return await client.eval(text, keys.length, ...keys, ...args);
  }
}

/** A reply of Redis as a list of texts. Throws `CorruptRecordError` for any other reply. */
export function textsOf(answer: unknown): string[] {
  if (!Array.isArray(answer)) throw new CorruptRecordError("Redis returned a value that is not a list");
  return answer.map((one: unknown) => (typeof one === "string" || typeof one === "number" ? String(one) : ""));
}

/** Warnings that this process has already emitted, for all stores. */
const warned = new Set<string>();

/**
 * Checks once whether the servers are suitable as the source of truth. Throws like `checkServers`; warns if acknowledged writes may be
 * lost, or if this cannot be checked.
 */
async function checkDurability(client: RedisClient): Promise<void> {
  const servers = await checkServers(client, { user: "the stores", atStake: "journals and budgets" });
  for (const server of servers) {
    const doubt = await doubtOf(server);
    if (doubt !== undefined) warn(doubt);
  }
  if (!("nodes" in client) && servers.every(({ facts }) => facts !== undefined)) oneServers.add(client);
}

async function doubtOf({ server, facts }: ServerFacts): Promise<string | undefined> {
  if (!facts) {
    return "the settings of Redis cannot be checked (INFO is refused). Make sure that maxmemory-policy is noeviction, and appendonly yes with appendfsync always where no acknowledged write may be lost.";
  }
  if (facts.get("aof_enabled") === "0") {
    return "Redis keeps no log of its writes (appendonly no): a crash loses all writes since its last snapshot, even acknowledged ones. Set appendonly yes and appendfsync always.";
  }
  const settings = await settingsOf(server, "*appendfsync*");
  const sync = settings?.get("appendfsync");
  if (sync === undefined) {
    return "cannot check whether Redis syncs every write (CONFIG is refused). Without appendfsync always, a crash can lose about the last second of acknowledged writes.";
  }
  if (sync === "always") {
    return settings?.get("no-appendfsync-on-rewrite") === "yes"
      ? "Redis syncs no write while it rewrites its log (no-appendfsync-on-rewrite yes): a crash can lose all writes that it acknowledged meanwhile. Set no-appendfsync-on-rewrite no."
      : undefined;
  }
  const lost = sync === "everysec" ? "about the last second" : "all data that the system has not written yet";
  return `Redis does not sync every write (appendfsync is ${sync}): a crash can lose ${lost} of acknowledged writes. Set appendfsync always where none may be lost.`;
}

/** By name; `undefined` if the server refuses to return them. */
async function settingsOf(
  server: ServerFacts["server"],
  names: string,
): Promise<ReadonlyMap<string, string> | undefined> {
  const answer: unknown = await unlessRefused(server.config("GET", names));
  if (!Array.isArray(answer)) return undefined;
  const words = answer.map(String);
  return new Map(words.flatMap((name, at) => (at % 2 === 0 ? [[name, words[at + 1] ?? ""] as const] : [])));
}

function warn(message: string): void {
  if (warned.has(message)) return;
  warned.add(message);
  process.emitWarning(message, { code: "TROUPE_REDIS_DURABILITY" });
}
