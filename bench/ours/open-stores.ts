import { tmpdir } from "node:os";
import { join } from "node:path";
import type { RedisServer } from "../../test/support/redis-server.ts";
import type { Stores } from "../../src/index.ts";
import { memoryStores } from "../../src/stores/memory.ts";
import { postgresStores } from "../../src/stores/postgres.ts";
import { redisStores } from "../../src/stores/redis.ts";
import { type SqliteOptions, sqliteStores } from "../../src/stores/sqlite.ts";
import { temporaryFolder } from "../temporary-folder.ts";

/** Stores that require only Node. */
export const storeKinds = ["memory", "sqlite"] as const;
export type StoreKind = (typeof storeKinds)[number] | "redis" | "postgres";

export interface OpenStores {
  readonly stores: Stores;
  /** Deletes the files and stops the server. Call it after the stores are closed. May be called again. */
  readonly remove: () => Promise<void>;
}

/**
 * Opens new stores: SQLite in a new temporary folder, by default with the default durability, Redis and Postgres on a new
 * server. Throws if the server is not available.
 */
export async function openStores(kind: StoreKind, options: SqliteOptions = {}): Promise<OpenStores> {
  if (kind === "memory") return { stores: memoryStores(), remove: async () => undefined };
  if (kind === "redis") return await openRedis();
  if (kind === "postgres") return await openPostgres();
  const { folder, remove } = temporaryFolder();
  return { stores: sqliteStores(join(folder, "bench.db"), options), remove: async () => remove() };
}

export interface OpenRedis extends OpenStores {
  readonly server: RedisServer;
}

/** Redis with a log on the same disk as SQLite's files, synced with every write as docs/stores.md recommends. */
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

/** Postgres with its files on the same disk as SQLite's. */
async function openPostgres(): Promise<OpenStores> {
  const { PostgresServer } = await import("../../test/support/postgres-server.ts");
  // Not in a folder of this user: the server may run as another one.
  const server = await PostgresServer.start({ folder: tmpdir() });
  return { stores: postgresStores({ url: server.url }), remove: () => server.stop() };
}

/** Why Postgres cannot be measured on this machine; `undefined` if it can. */
export async function lacksPostgres(): Promise<string | undefined> {
  const { postgresProgram } = await import("../../test/support/postgres-server.ts");
  return postgresProgram ? undefined : "there is no Postgres";
}

/** Why Redis cannot be measured on this machine; `undefined` if it can. */
export async function lacksRedis(): Promise<string | undefined> {
  const { redisProgram } = await import("../../test/support/redis-server.ts");
  return redisProgram ? undefined : "there is no redis-server";
}
