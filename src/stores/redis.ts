import { withSharedLink } from "../redis/index.ts";
import { checkedOptions, type RedisStoresOptions } from "./redis/redis-connection.ts";
import { RedisDatabase } from "./redis/redis-database.ts";
import { commitCharged } from "./rules/charged-commit.ts";
import { commitBatch } from "./rules/commit.ts";
import { allApplied, databaseStores } from "./rules/database-stores.ts";
import type { CommitOutcome } from "./rules/outcomes.ts";
import type { Stores } from "./rules/ports.ts";

export type { RedisStoresOptions } from "./redis/redis-connection.ts";

/**
 * Stores in Redis 6.2 or later, single or cluster, for any number of processes on any number of machines. Connects on first use; close
 * the stores when you no longer need them.
 *
 * Throws `InvalidInputError` for contradicting options. The first use throws `InvalidInputError` for a Redis that evicts data when its
 * memory is full, and `UnsupportedError` if Redis is too old or the package `ioredis` is missing. Any use throws `StoreUnavailableError`
 * if Redis does not answer within `timeoutMs`.
 */
export function redisStores(options: RedisStoresOptions): Stores {
  const checked = checkedOptions(options);
  const database = new RedisDatabase(checked);
  const stores = databaseStores("redis", database);
  const whole: Stores = {
    ...stores,
    /** If Redis does not know a living process, it may have lost more: it was emptied or rolled back. */
    heartbeat: async (processId, steady) => {
      const isKnown = await stores.heartbeat(processId, steady);
      if (!isKnown) database.checkForRollbacks();
      return isKnown;
    },
    openTurn: (key, command, now) => database.openTurn(key, command, now),
    steer: (key, command, now) => database.steer(key, command, now),
    holder: (key) => database.holder(key),
    lookAtTurn: (key, turnId, after) => database.lookAtTurn(key, turnId, after),
    treeActivity: (tenant, rootAgentId) => database.treeActivity(tenant, rootAgentId),
    treeHead: (tenant, rootAgentId) => database.treeHead(tenant, rootAgentId),
    /** Each batch succeeds or fails alone; batches of one tree share a transaction. */
    commit: async (batches, now, steady = now) => {
      return await allApplied(
        batches.map((batch) =>
          commitCharged(stores.outer, batch, { now, steady }, (answers) =>
            database.writeTo(batch.key, () => commitBatch(database.tables, batch, { now, steady }, answers), placed),
          ),
        ),
      );
    },
  };
  return withSharedLink(whole, { link: database.connection, prefix: checked.prefix });
}

/** The cursor of a new row is known only after the write. */
function placed(outcome: CommitOutcome, { cursor: cursorBefore }: { readonly cursor: number }): CommitOutcome {
  if (outcome.type !== "committed" || outcome.cursor >= 0) return outcome;
  const cursor = cursorBefore - outcome.cursor;
  return { ...outcome, cursor, follows: cursor - 1 };
}
