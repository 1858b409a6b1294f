import type { Stores } from "../src/index.ts";
import { type RedisStoresOptions, redisStores } from "../src/stores/redis.ts";
import { sqliteStores } from "../src/stores/sqlite.ts";

const scheme = "redis://";

/** The address of stores on the run's Redis, with the prefix that distinguishes them. */
export function redisPlace(url: string, prefix: string): string {
  return `${url}#${prefix}`;
}

export function isOnRedis(place: string): boolean {
  return place.startsWith(scheme);
}

/** Default timeout of commands in milliseconds, long enough for a busy machine. */
const PATIENT_MS = 20_000;

/** The stores at a location: the path of a SQLite file, or a Redis URL with the prefix of all keys after `#`. */
export function storesAt(
  place: string,
  { timeoutMs = PATIENT_MS }: Pick<RedisStoresOptions, "timeoutMs"> = {},
): Stores {
  if (!isOnRedis(place)) return sqliteStores(place);
  const [url = "", prefix = ""] = place.split("#");
  return redisStores({ url, prefix, timeoutMs });
}
