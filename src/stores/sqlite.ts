import { InvalidInputError } from "../errors/index.ts";
import { localStores } from "./local-stores.ts";
import type { Stores } from "./ports.ts";
import { SqliteDatabase, type SqliteOptions } from "./sqlite-database.ts";

export type { SqliteOptions } from "./sqlite-database.ts";

/**
 * Stores in one SQLite file, which several processes of one machine may share. `:memory:` gives one that ends with the
 * process. The file is made where it is absent (readable by its owner only), its folder is not.
 *
 * Throws `InvalidInputError` for a path that is no place for a file or holds something else, `UnsupportedError` for a
 * file of a newer version of this package, `CorruptRecordError` for a file that is damaged or no database, and
 * `StoreUnavailableError` when the file stays locked while it is opened.
 */
export function sqliteStores(path: string, options: SqliteOptions = {}): Stores {
  const { durability, busyLimitMs, maxBytes } = options;
  if (durability !== undefined && durability !== "process" && durability !== "full") {
    throw new InvalidInputError(`durability is ${JSON.stringify(durability)}; it takes "process" or "full"`);
  }
  if (busyLimitMs !== undefined && !(Number.isFinite(busyLimitMs) && busyLimitMs >= 0)) {
    throw new InvalidInputError(`busyLimitMs is ${String(busyLimitMs)}; it takes milliseconds of at least 0`);
  }
  if (maxBytes !== undefined && !(Number.isSafeInteger(maxBytes) && maxBytes > 0)) {
    throw new InvalidInputError(`maxBytes is ${String(maxBytes)}; it takes a whole number of bytes above 0`);
  }
  return localStores("sqlite", new SqliteDatabase(path, options));
}
