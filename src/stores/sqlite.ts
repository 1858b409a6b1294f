import { type OptionsSchema, oneOfRule, optionsOf, ruleOf, wholeNumberRule } from "../base/index.ts";
import { databaseStores } from "./rules/database-stores.ts";
import type { Stores } from "./rules/ports.ts";
import { SqliteDatabase, type SqliteOptions } from "./sqlite/sqlite-database.ts";

export type { SqliteOptions } from "./sqlite/sqlite-database.ts";

const sqliteOptionsSchema: OptionsSchema<SqliteOptions> = {
  rules: {
    durability: oneOfRule("process", "full"),
    busyLimitMs: ruleOf(
      "milliseconds of at least 0",
      (value) => typeof value === "number" && Number.isFinite(value) && value >= 0,
    ),
    maxBytes: wholeNumberRule(1),
  },
  instead: { timeoutMs: "busyLimitMs", busyTimeoutMs: "busyLimitMs", maxSize: "maxBytes" },
};

/**
 * Stores in one SQLite file, which several processes of one machine may share. `:memory:` is a database that is lost when the process
 * ends. Creates the file (readable only by its owner), but not its folder.
 *
 * Throws `InvalidInputError` if the path cannot be a file or is another file, `UnsupportedError` for a file of a newer version of this
 * package, `CorruptRecordError` for a file that is damaged or not a database, and `StoreUnavailableError` if the file stays locked while
 * it is opened.
 */
export function sqliteStores(path: string, given?: SqliteOptions): Stores {
  const options = optionsOf<SqliteOptions>(given, "sqliteStores()", sqliteOptionsSchema);
  return databaseStores("sqlite", new SqliteDatabase(path, options));
}
