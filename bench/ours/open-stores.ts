import { join } from "node:path";
import type { RedisServer } from "../../test/support/redis-server.ts";
import type { Stores } from "../../src/index.ts";
import { memoryStores } from "../../src/stores/memory.ts";
import { redisStores } from "../../src/stores/redis.ts";
import { type SqliteOptions, sqliteStores } from "../../src/stores/sqlite.ts";
import { temporaryFolder } from "../temporary-folder.ts";

/** Stores that need nothing but Node. */
export const storeKinds = ["memory", "sqlite"] as const;
export type StoreKind = (typeof storeKinds)[number] | "redis";

export interface OpenStores {
  readonly stores: Stores;
  /** Removes what lies on the disk, and ends the server; to be called when the stores are closed. May be called again. */
  readonly remove: () => Promise<void>;
}

/**
 * Stores of their own, SQLite on a file in a new temporary folder, by default with the default durability, Redis on a server
 * of its own. Throws where there is no `redis-server`.
 */
export async function openStores(kind: StoreKind, options: SqliteOptions = {}): Promise<OpenStores> {
  if (kind === "memory") return { stores: memoryStores(), remove: async () => undefined };
  if (kind === "redis") return await openRedis();
  const { folder, remove } = temporaryFolder();
  return { stores: sqliteStores(join(folder, "bench.db"), options), remove: async () => remove() };
}

export interface OpenRedis extends OpenStores {
  readonly server: RedisServer;
}

/** Redis with a log on the disk that SQLite's files lie on too, synced with every write: as docs/stores.md has it. */
export async function openRedis(): Promise<OpenRedis> {
  const { RedisServer } = await import("../../test/support/redis-server.ts");
  const { folder, remove } = temporaryFolder();
  const server = await RedisServer.start({ folder });
  return {
    stores: redisStores({ url: server.url }),
    server,
    remove: async () => {
      await server.stop();
      remove();
    },
  };
}

/** Why nothing can be measured on Redis here; undefined where it can. */
export async function lacksRedis(): Promise<string | undefined> {
  const { redisProgram } = await import("../../test/support/redis-server.ts");
  return redisProgram ? undefined : "there is no redis-server";
}
