import { PostgresDatabase } from "./postgres/postgres-database.ts";
import { checkedOptions, type PostgresStoresOptions } from "./postgres/postgres-options.ts";
import { databaseStores } from "./rules/database-stores.ts";
import type { Stores } from "./rules/ports.ts";

export type { PostgresStoresOptions } from "./postgres/postgres-options.ts";

/**
 * Stores in Postgres 13 or later, for any number of processes on any number of machines. Connects on first use, creates and migrates its
 * schema; close the stores when you no longer need them.
 *
 * Throws `InvalidInputError` for contradicting options. The first use throws `InvalidInputError` for a database or schema that cannot be
 * used, and `UnsupportedError` if Postgres or the schema has an unsupported version or the package `pg` is missing. Any use throws
 * `StoreUnavailableError` if Postgres does not answer within `timeoutMs`.
 */
export function postgresStores(options: PostgresStoresOptions): Stores {
  const database = new PostgresDatabase(checkedOptions(options));
  const stores = databaseStores("postgres", database);
  return {
    ...stores,
    /** If Postgres does not know a living process, it may have lost more. */
    heartbeat: async (processId, steady) => {
      const isKnown = await database.heartbeat(processId, steady);
      if (!isKnown) database.checkForRollbacks();
      return isKnown;
    },
  };
}
