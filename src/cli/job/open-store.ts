import { mkdirSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { InvalidInputError } from "../../errors/index.ts";
import type { Stores } from "../../stores/index.ts";
import { sqliteStores } from "../../stores/sqlite.ts";

/** Where jobs are kept when nobody says otherwise, below the working directory. */
export const defaultStorePath = "./.troupe/ask.db";

/** The words that name a store on a command line: none for the default one. */
export function storeWords(path: string): readonly string[] {
  return path === defaultStorePath ? [] : ["--store", path];
}

/** Opens a store for work; the file and its folder are made where they are absent. */
export function openStore(path: string): Stores {
  if (path !== ":memory:") mkdirSync(dirname(resolve(path)), { recursive: true });
  return sqliteStores(path);
}

/** Opens a store that must be there: whoever only looks makes no file. Throws `InvalidInputError` when there is none. */
export function openExistingStore(path: string): Stores {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats?.isFile() === true) return sqliteStores(path);
  throw new InvalidInputError(
    stats === undefined
      ? `there is no store at ${path}; give the path of one with --store, or start a job first`
      : `${path} is no file; give the path of a store with --store`,
  );
}

/** Opens, works, closes, whatever comes of it. */
export async function withStore<T>(stores: Stores, work: (stores: Stores) => Promise<T>): Promise<T> {
  try {
    return await work(stores);
  } finally {
    await stores.close();
  }
}

/** The same stores for a runtime that closes what it was given, while somebody goes on using them. */
export function keptOpen(stores: Stores): Stores {
  return { ...stores, close: async () => {} };
}
