import type { Stores } from "../src/index.ts";
import { type RedisStoresOptions, redisStores } from "../src/stores/redis.ts";
import { sqliteStores } from "../src/stores/sqlite.ts";

const scheme = "redis://";

/** The address of stores on a Redis of the run, told from others by their prefix. */
export function redisPlace(url: string, prefix: string): string {
  return `${url}#${prefix}`;
}

export function isOnRedis(place: string): boolean {
  return place.startsWith(scheme);
}

/** Where nothing is said, commands may take so many milliseconds: a machine that is busy is not what is tried. */
const PATIENT_MS = 20_000;

/** The stores at a place: the path of a SQLite file, or an address of Redis with the prefix of all keys behind `#`. */
export function storesAt(
  place: string,
  { timeoutMs = PATIENT_MS }: Pick<RedisStoresOptions, "timeoutMs"> = {},
): Stores {
  if (!isOnRedis(place)) return sqliteStores(place);
  const [url = "", prefix = ""] = place.split("#");
  return redisStores({ url, prefix, timeoutMs });
}
