import { InvalidInputError } from "../errors/index.ts";
import { checkedPlace, type RedisPlace, type RedisPlaceOptions } from "../redis/index.ts";

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

/** Throws `InvalidInputError` for what cannot work, in words that do not show what a URL holds. */
export function checkedOptions(options: RedisStoresOptions): CheckedOptions {
  const { prefix = DEFAULT_PREFIX, timeoutMs = DEFAULT_TIMEOUT_MS, ttl } = options;
  const place = checkedPlace("redisStores", options);
  if (!(Number.isSafeInteger(timeoutMs) && timeoutMs > 0)) {
    throw new InvalidInputError(`timeoutMs is ${String(timeoutMs)}; it takes whole milliseconds above 0`);
  }
  if (ttl !== undefined && !(Number.isSafeInteger(ttl) && ttl > 0)) {
    throw new InvalidInputError(`ttl is ${String(ttl)}; it takes whole seconds above 0`);
  }
  return { place, prefix, timeoutMs, ttl };
}
