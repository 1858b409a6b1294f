import { DatabaseSync, type StatementSync } from "node:sqlite";
import { CorruptRecordError, InvariantError, StoreUnavailableError, TroupeError } from "../../errors/index.ts";
import { type AgentKey, rootOf } from "../../state/index.ts";
import { checkLayout, layOut } from "./sqlite-schema.ts";

/** How long one attempt to get a lock blocks this process, in milliseconds. */
const BUSY_TIMEOUT_MS = 10;
/** The same while the file is opened, which can only wait by blocking. */
const OPENING_TIMEOUT_MS = 5000;
/** Size of the write-ahead log, in pages, at which it is merged into the file: 16 MB, so that syncs stay rare. */
const CHECKPOINT_PAGES = 4000;
const CACHE_KIBIBYTES = 16_384;

interface ConnectionOptions {
  readonly durability?: "process" | "full" | undefined;
  readonly maxBytes?: number | undefined;
}

/**
 * One open database file and its transaction.
 * Owns: the handle, the transaction, the generation. Does not own: the queue of writes, the rows.
 *
 * Invariants
 * 1. A transaction holds the write lock from its start, so that what it has read stays true until it ends.
 * 2. The generation grows when another connection has written, which is noticed at the start of a transaction and of a
 *    snapshot: within them, a value of the current generation need not be read again.
 * 3. After a rollback `forget` is called, because caches may hold what was undone.
 */
export class SqliteConnection {
  readonly database: DatabaseSync;
  generation = 1;
  /** Whether a transaction or a snapshot is open. */
  isInTransaction = false;
  forget: () => void = () => {};
  /** Forgets what is cached of the trees of these agents; it is read again where it is needed. */
  rest: (keys: readonly AgentKey[]) => void = () => {};
  #dataVersion: unknown;
  readonly #statements: Readonly<
    Record<"begin" | "beginReading" | "commit" | "save" | "keep" | "undo" | "version", StatementSync>
  >;

  private constructor(database: DatabaseSync) {
    this.database = database;
    this.#statements = {
      begin: this.prepare("BEGIN IMMEDIATE"),
      beginReading: this.prepare("BEGIN"),
      commit: this.prepare("COMMIT"),
      save: this.prepare("SAVEPOINT part"),
      keep: this.prepare("RELEASE part"),
      undo: this.prepare("ROLLBACK TO part"),
      version: this.prepare("PRAGMA data_version"),
    };
    // Older versions of Node.js give rows as objects alone, which cost more to make than the statement.
    if ("setReturnArrays" in this.#statements.version) this.#statements.version.setReturnArrays(true);
  }

  /**
   * Opens the file and makes its tables if it is new. Blocks for up to some seconds while another process opens the file
   * too, or SQLite repairs it after a crash.
   */
  static open(path: string, options: ConnectionOptions): SqliteConnection {
    const database = new DatabaseSync(path);
    try {
      database.exec(`PRAGMA busy_timeout = ${OPENING_TIMEOUT_MS}`);
      untilFree(() => checkLayout(database, path));
      untilFree(() => database.exec("PRAGMA journal_mode = WAL"));
      database.exec(`PRAGMA synchronous = ${options.durability === "full" ? "FULL" : "NORMAL"}`);
      database.exec(`PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES}`);
      database.exec(`PRAGMA cache_size = -${CACHE_KIBIBYTES}`);
      database.exec("PRAGMA temp_store = MEMORY");
      untilFree(() => layOut(database, path));
      database.exec(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
      if (options.maxBytes !== undefined) limitSize(database, options.maxBytes);
      return new SqliteConnection(database);
    } catch (error) {
      database.close();
      throw error;
    }
  }

  prepare(sql: string): StatementSync {
    return this.database.prepare(sql);
  }

  transaction<T>(work: () => T): T {
    this.#statements.begin.run();
    this.isInTransaction = true;
    try {
      this.#noticeOthers();
      const result = work();
      this.#statements.commit.run();
      return result;
    } catch (error) {
      this.#rollback();
      throw error;
    } finally {
      this.isInTransaction = false;
    }
  }

  /** Runs reads that see the file at one moment, even if others write meanwhile. */
  snapshot<T>(work: () => T): T {
    this.#statements.beginReading.run();
    this.isInTransaction = true;
    try {
      this.#noticeOthers();
      return work();
    } finally {
      this.isInTransaction = false;
      this.#endReading();
    }
  }

  part<T>(work: () => T): T {
    this.#statements.save.run();
    try {
      const result = work();
      this.#statements.keep.run();
      return result;
    } catch (error) {
      if (!isStorageFailure(error)) {
        this.#statements.undo.run();
        this.#statements.keep.run();
        this.forget();
      }
      throw error;
    }
  }

  /** Changes when another connection has written. */
  dataVersion(): unknown {
    const row = this.#statements.version.get();
    return Array.isArray(row) ? row[0] : row?.["data_version"];
  }

  close(): void {
    try {
      this.database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    } catch {
      // On a disk without room the log stays beside the file: whoever opens it next reads both.
    }
    this.database.close();
  }

  #noticeOthers(): void {
    const version = this.dataVersion();
    if (version === this.#dataVersion) return;
    this.#dataVersion = version;
    this.generation += 1;
  }

  #endReading(): void {
    try {
      this.#statements.commit.run();
    } catch {
      // After some failures SQLite has ended the transaction by itself.
    }
  }

  #rollback(): void {
    this.forget();
    try {
      this.database.exec("ROLLBACK");
    } catch {
      // After some failures SQLite has rolled back by itself.
    }
  }
}

/** A cache by tenant and id, so that keys cannot collide. When it is full it is emptied. */
export class KeyedCache<T> {
  readonly #tenants = new Map<string, Map<string, T>>();
  readonly #capacity: number;
  #size = 0;

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  get(tenant: string, id: string): T | undefined {
    return this.#tenants.get(tenant)?.get(id);
  }

  set(tenant: string, id: string, value: T): void {
    const isNew = this.get(tenant, id) === undefined;
    if (isNew && this.#size >= this.#capacity) this.clear();
    let values = this.#tenants.get(tenant);
    if (!values) {
      values = new Map();
      this.#tenants.set(tenant, values);
    }
    values.set(id, value);
    if (isNew) this.#size += 1;
  }

  /** Forgets those of the trees of these agents; gives them. `agentOf`: the agent that an id names. */
  dropTrees(keys: readonly AgentKey[], agentOf: (id: string) => string): T[] {
    const dropped: T[] = [];
    for (const [tenant, ofTenant] of Map.groupBy(keys, (key) => key.tenant)) {
      const roots = new Set(ofTenant.map(({ agentId }) => rootOf(agentId)));
      const values = this.#tenants.get(tenant);
      for (const [id, value] of values ?? []) {
        if (!roots.has(rootOf(agentOf(id)))) continue;
        dropped.push(value);
        values?.delete(id);
      }
    }
    this.#size -= dropped.length;
    return dropped;
  }

  clear(): void {
    this.#tenants.clear();
    this.#size = 0;
  }
}

/** Changing the journal mode ignores SQLite's time-out when another process does the same. */
function untilFree(work: () => void): void {
  const end = performance.now() + OPENING_TIMEOUT_MS;
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

/** Primary result codes after which the same command may succeed later. */
const passing: ReadonlyMap<number, string> = new Map([
  [5, "SQLITE_BUSY"],
  [6, "SQLITE_LOCKED"],
  [7, "SQLITE_NOMEM"],
  [8, "SQLITE_READONLY"],
  [9, "SQLITE_INTERRUPT"],
  [10, "SQLITE_IOERR"],
  [13, "SQLITE_FULL"],
  [14, "SQLITE_CANTOPEN"],
  [15, "SQLITE_PROTOCOL"],
]);

const corrupt: ReadonlyMap<number, string> = new Map([
  [11, "SQLITE_CORRUPT"],
  [26, "SQLITE_NOTADB"],
]);

interface SqliteError extends Error {
  readonly code: "ERR_SQLITE_ERROR";
  readonly errcode: number;
}

/** The lower byte of SQLite's result code; undefined for other errors. */
function primaryCode(error: unknown): number | undefined {
  return isSqliteError(error) ? error.errcode & 0xff : undefined;
}

function isSqliteError(error: unknown): error is SqliteError {
  return error instanceof Error && "errcode" in error && typeof error.errcode === "number";
}

/** Whether another connection holds the lock, so that an immediate retry may succeed. */
export function isBusy(error: unknown): boolean {
  const code = primaryCode(error);
  return code === 5 || code === 6;
}

/** Whether SQLite itself failed, in which case the whole transaction is rolled back. */
export function isStorageFailure(error: unknown): boolean {
  return primaryCode(error) !== undefined;
}

/** Translates SQLite's errors into the package's own; returns other errors unchanged. */
export function translated(error: unknown, path: string): unknown {
  const code = primaryCode(error);
  if (code === undefined || !isSqliteError(error) || error instanceof TroupeError) return error;
  const details = { path, extendedCode: error.errcode };
  const transient = passing.get(code);
  if (transient !== undefined) {
    return new StoreUnavailableError(`the store ${path} is not available (${transient}: ${error.message})`, {
      details: { ...details, code: transient },
      cause: error,
    });
  }
  const damage = corrupt.get(code);
  if (damage !== undefined) {
    return new CorruptRecordError(`the file ${path} is damaged or no database (${damage}); it is left as it is`, {
      details: { ...details, code: damage },
      cause: error,
    });
  }
  return new InvariantError(`a statement failed on ${path}: ${error.message}`, { details, cause: error });
}
