import { join } from "node:path";
import type { Stores } from "../../src/index.ts";
import { memoryStores } from "../../src/stores/memory.ts";
import { type SqliteOptions, sqliteStores } from "../../src/stores/sqlite.ts";
import { temporaryFolder } from "../temporary-folder.ts";

export const storeKinds = ["memory", "sqlite"] as const;
export type StoreKind = (typeof storeKinds)[number];

export interface OpenStores {
  readonly stores: Stores;
  /** Removes what lies on the disk; to be called when the stores are closed. May be called again. */
  readonly remove: () => void;
}

/** Stores of their own, SQLite on a file in a new temporary folder, by default with the default durability. */
export function openStores(kind: StoreKind, options: SqliteOptions = {}): OpenStores {
  if (kind === "memory") return { stores: memoryStores(), remove: () => undefined };
  const { folder, remove } = temporaryFolder();
  return { stores: sqliteStores(join(folder, "bench.db"), options), remove };
}
