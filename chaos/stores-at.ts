import type { Stores } from "../src/index.ts";
import { shortHash } from "../src/base/index.ts";
import { postgresStores } from "../src/stores/postgres.ts";
import { type RedisStoresOptions, redisStores } from "../src/stores/redis.ts";
import { sqliteStores } from "../src/stores/sqlite.ts";

const [redisScheme, postgresScheme] = ["redis://", "postgres://"];

/** The address of stores on the run's Redis, with the prefix that distinguishes them. */
export function redisPlace(url: string, prefix: string): string {
  return `${url}#${prefix}`;
}

/** The address of stores on the run's Postgres, with the name that distinguishes them. */
export function postgresPlace(url: string, name: string): string {
  return `${url}#chaos_${shortHash(name)}`;
}

export function isOnRedis(place: string): boolean {
  return place.startsWith(redisScheme);
}

export function isOnServer(place: string): boolean {
  return isOnRedis(place) || place.startsWith(postgresScheme);
}

/** Default timeout of commands in milliseconds, long enough for a busy machine. */
const PATIENT_MS = 20_000;

/** The stores at a location: the path of a SQLite file, a Redis URL with the prefix of all keys after `#`, or one of Postgres with its schema. */
export function storesAt(
  place: string,
  { timeoutMs = PATIENT_MS }: Pick<RedisStoresOptions, "timeoutMs"> = {},
): Stores {
  if (!isOnServer(place)) return sqliteStores(place);
  const [url = "", name = ""] = place.split("#");
  return isOnRedis(place)
    ? redisStores({ url, prefix: name, timeoutMs })
    : postgresStores({ url, schema: name, timeoutMs });
}
