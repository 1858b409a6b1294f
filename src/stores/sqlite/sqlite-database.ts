import { setTimeout as delay } from "node:timers/promises";
import { backoffDelay } from "../../base/index.ts";
import { InvariantError, StoreUnavailableError } from "../../errors/index.ts";
import type { ForeignWrites } from "../rules/foreign-write.ts";
import { LocalLive } from "../rules/local-live.ts";
import type { LocalDatabase, RestlessTables } from "../rules/local-tables.ts";
import { SqliteConnection } from "./sqlite-connection.ts";
import { isBusy, isStorageFailure, translated } from "./sqlite-errors.ts";
import { prepareFile } from "./sqlite-file.ts";
import { SqliteForeignWrites } from "./sqlite-foreign-writes.ts";
import { SqliteTrees } from "./sqlite-trees.ts";
import { unattendedIn } from "../rules/unattended.ts";

export interface SqliteOptions {
  /**
   * What an acknowledged write survives. `process` (the default): the end of the process, however sudden. `full`: also
   * that of the machine; each commit waits for the disk.
   */
  readonly durability?: "process" | "full" | undefined;
  /** How long to wait for another process' lock before giving up, in milliseconds; 5,000 by default. */
  readonly busyLimitMs?: number | undefined;
  /**
   * Largest size of the file in bytes; as large as the disk allows by default. A write past it fails as one on a full
   * disk does: `StoreUnavailableError`, code `SQLITE_FULL`, nothing written.
   */
  readonly maxBytes?: number | undefined;
}

const DEFAULT_BUSY_LIMIT_MS = 5000;
/** Every attempt may block for some milliseconds, so that others of this process get their time between two of them. */
const SHORTEST_PAUSE_MS = 2;
const pauses = { baseMs: 4, capMs: 100 };

/**
 * One database file, shared with other processes.
 * Owns: the order of this process' writes and the waiting for others' locks. Does not own: the rows.
 *
 * Invariants
 * 1. Writes of this process take effect in the order they were called: while one waits for a lock, those behind it wait.
 * 2. Waiting for a lock never blocks the process for more than one short attempt at a time.
 * 3. An error of SQLite never leaves as it is; what was written before it in the transaction is gone.
 */
export class SqliteDatabase implements LocalDatabase {
  readonly tables: RestlessTables;
  readonly live = new LocalLive();
  readonly #path: string;
  readonly #connection: SqliteConnection;
  readonly #foreignWrites: SqliteForeignWrites;
  readonly #busyLimitMs: number;
  /** The last write in line; absent when nobody waits. */
  #line: Promise<void> | undefined;
  #isClosed = false;

  constructor(path: string, options: SqliteOptions) {
    prepareFile(path);
    this.#path = path;
    this.#busyLimitMs = options.busyLimitMs ?? DEFAULT_BUSY_LIMIT_MS;
    try {
      this.#connection = SqliteConnection.open(path, options);
      this.tables = new SqliteTrees(this.#connection);
    } catch (error) {
      throw translated(error, path);
    }
    this.#foreignWrites = new SqliteForeignWrites(() => this.#connection.dataVersion());
  }

  write<T>(work: () => T): Promise<T> {
    const attempt = (): T => this.#connection.transaction(work);
    if (this.#line) return this.#standInLine(attempt);
    try {
      this.#checkOpen();
      return Promise.resolve(attempt());
    } catch (error) {
      return isBusy(error) ? this.#standInLine(attempt) : Promise.reject(translated(error, this.#path));
    }
  }

  part<T>(work: () => T): T {
    return this.#connection.part(work);
  }

  isFatal(error: unknown): boolean {
    return isStorageFailure(error);
  }

  async read<T>(work: () => T): Promise<T> {
    return this.#untilFree(() => this.#connection.snapshot(work), performance.now());
  }

  unattended(
    ...[tenant, query, steady]: Parameters<LocalDatabase["unattended"]>
  ): ReturnType<LocalDatabase["unattended"]> {
    return this.read(() => unattendedIn(this.tables, tenant, query, steady));
  }

  onForeignWrite(listener: (writes: ForeignWrites) => void): () => void {
    return this.#foreignWrites.listen(listener);
  }

  async close(): Promise<void> {
    this.#foreignWrites.stop();
    await this.#line;
    if (this.#isClosed) return;
    this.#isClosed = true;
    try {
      this.#connection.close();
    } catch (error) {
      throw translated(error, this.#path);
    }
  }

  async #standInLine<T>(attempt: () => T): Promise<T> {
    const start = performance.now();
    const before = this.#line;
    const turn = Promise.withResolvers<void>();
    this.#line = turn.promise;
    await before;
    try {
      return await this.#untilFree(attempt, start);
    } finally {
      if (this.#line === turn.promise) this.#line = undefined;
      turn.resolve();
    }
  }

  async #untilFree<T>(attempt: () => T, start: number): Promise<T> {
    for (let failures = 1; ; failures += 1) {
      try {
        this.#checkOpen();
        return attempt();
      } catch (error) {
        if (!isBusy(error)) throw translated(error, this.#path);
        if (performance.now() - start >= this.#busyLimitMs) throw this.#gaveUp(error);
      }
      await delay(SHORTEST_PAUSE_MS + backoffDelay(failures, Math.random(), pauses));
    }
  }

  #gaveUp(cause: unknown): StoreUnavailableError {
    return new StoreUnavailableError(
      `the store ${this.#path} was locked by another process for ${this.#busyLimitMs} ms (SQLITE_BUSY)`,
      { details: { path: this.#path, code: "SQLITE_BUSY" }, cause },
    );
  }

  #checkOpen(): void {
    if (this.#isClosed) throw new InvariantError(`the store ${this.#path} was closed, and then used`);
  }
}
