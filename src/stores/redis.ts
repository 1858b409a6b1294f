import { checkedOptions, type RedisStoresOptions } from "./redis/redis-connection.ts";
import { RedisDatabase } from "./redis/redis-database.ts";
import { commitBatch } from "./rules/commit.ts";
import { localStores } from "./rules/database-stores.ts";
import type { CommitOutcome } from "./rules/outcomes.ts";
import type { Stores } from "./rules/ports.ts";

export type { RedisStoresOptions } from "./redis/redis-connection.ts";

/**
 * Stores in Redis 6.2 or later, single or cluster, for any number of processes on any number of machines. Nothing is
 * connected before the first use; close them when they are not needed any more.
 *
 * Throws `InvalidInputError` for options that do not go together. What is used first throws `InvalidInputError` for a
 * Redis that throws data away when its memory is full, and `UnsupportedError` for one that is too old or without the
 * package `ioredis`; whatever finds Redis away throws `StoreUnavailableError` after `timeoutMs`.
 */
export function redisStores(options: RedisStoresOptions): Stores {
  const database = new RedisDatabase(checkedOptions(options));
  const stores = localStores("redis", database);
  return {
    ...stores,
    /** A Redis that has forgotten a living process has lost more than that: it was emptied, or stands as it did before. */
    heartbeat: async (processId, steady) => {
      const isKnown = await stores.heartbeat(processId, steady);
      if (!isKnown) database.lookForSetBacks();
      return isKnown;
    },
    standing: (tenant, rootAgentId) => database.standing(tenant, rootAgentId),
    /** Each batch is judged by itself; those of one tree go in one transaction. */
    commit: async (batches, now, steady = now) => {
      const judged = batches.map((batch) =>
        database.write(() => commitBatch(database.tables, batch, { now, steady }), placed),
      );
      const settled = await Promise.allSettled(judged);
      return settled.map((one) => {
        if (one.status === "rejected") throw one.reason;
        return one.value;
      });
    },
  };
}

/** A row that was new got its place when it was written. */
function placed(outcome: CommitOutcome, cursorBefore: number): CommitOutcome {
  if (outcome.type !== "committed" || outcome.cursor >= 0) return outcome;
  return { ...outcome, cursor: cursorBefore - outcome.cursor };
}
