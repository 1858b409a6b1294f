import { type Door, optionsOf, textRule, wholeNumberRule } from "../../base/index.ts";
import { checkedPlace, type RedisPlace, type RedisPlaceOptions, redisPlaceRules } from "../../redis/index.ts";

/** Where Redis is, one of `url`, `client` and `cluster`, and what is kept there how. */
export interface RedisStoresOptions extends RedisPlaceOptions {
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
  readonly place: RedisPlace;
  readonly prefix: string;
  readonly timeoutMs: number;
  readonly ttl: number | undefined;
}

export const DEFAULT_PREFIX = "troupe:";
const DEFAULT_TIMEOUT_MS = 5000;

const redisDoor: Door<RedisStoresOptions> = {
  rules: { ...redisPlaceRules, prefix: textRule, timeoutMs: wholeNumberRule(1), ttl: wholeNumberRule(1) },
  instead: { redis: "client", connection: "client", nodes: "cluster: { nodes }", ttlMs: "ttl" },
};

/** Throws `InvalidInputError` for what cannot work, in words that do not show what a URL holds. */
export function checkedOptions(given: RedisStoresOptions): CheckedOptions {
  const options = optionsOf<RedisStoresOptions>(given, "redisStores()", redisDoor);
  const { prefix = DEFAULT_PREFIX, timeoutMs = DEFAULT_TIMEOUT_MS, ttl } = options;
  const place = checkedPlace("redisStores", options);
  return { place, prefix, timeoutMs, ttl };
}
