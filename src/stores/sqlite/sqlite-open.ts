import { DatabaseSync } from "node:sqlite";
import { isBusy } from "./sqlite-errors.ts";
import { layoutOf, migrate } from "./sqlite-migrations.ts";

/** How long one attempt to get a lock blocks this process, in milliseconds. */
const BUSY_TIMEOUT_MS = 10;
/** The same while the file is opened, when blocking is the only way to wait. */
const LONG_TIMEOUT_MS = 5000;
/** Page size of new files, in bytes. A commit writes complete pages, but changes only a few hundred bytes in most of them. */
const PAGE_SIZE = 4096;
/** Size of SQLite's write-ahead log, in pages, at which it is merged into the file: 16 MB, so that syncs stay rare. */
const CHECKPOINT_PAGES = 4000;
const CACHE_KIBIBYTES = 16_384;

export interface OpeningOptions {
  readonly durability?: "process" | "full" | undefined;
  readonly maxBytes?: number | undefined;
}

/** Opens the file and migrates it to the current layout. */
export function openDatabase(path: string, options: OpeningOptions): DatabaseSync {
  const database = new DatabaseSync(path);
  try {
    database.exec(`PRAGMA busy_timeout = ${LONG_TIMEOUT_MS}`);
    untilFree(() => layoutOf(database, path));
    database.exec(`PRAGMA page_size = ${PAGE_SIZE}`);
    untilFree(() => database.exec("PRAGMA journal_mode = WAL"));
    database.exec(`PRAGMA synchronous = ${options.durability === "full" ? "FULL" : "NORMAL"}`);
    database.exec(`PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES}`);
    database.exec(`PRAGMA cache_size = -${CACHE_KIBIBYTES}`);
    database.exec("PRAGMA temp_store = MEMORY");
    // Overwrites deleted rows with zeros, so that a deletion also removes what was updated or deleted before it.
    database.exec("PRAGMA secure_delete = ON");
    untilFree(() => migrate(database, path));
    database.exec(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
    if (options.maxBytes !== undefined) limitSize(database, options.maxBytes);
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

/** Changing the journal mode ignores SQLite's timeout if another process does the same. */
function untilFree(work: () => void): void {
  const end = performance.now() + LONG_TIMEOUT_MS;
  const sleeper = new Int32Array(new SharedArrayBuffer(4));
  for (;;) {
    try {
      return work();
    } catch (error) {
      if (!isBusy(error) || performance.now() >= end) throw error;
      Atomics.wait(sleeper, 0, 0, 10);
    }
  }
}

function limitSize(database: DatabaseSync, maxBytes: number): void {
  const pageSize = Number(database.prepare("PRAGMA page_size").get()?.["page_size"]);
  database.exec(`PRAGMA max_page_count = ${Math.max(1, Math.floor(maxBytes / pageSize))}`);
}
