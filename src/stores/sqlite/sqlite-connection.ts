import type { DatabaseSync } from "node:sqlite";
import { openDatabase, type OpeningOptions } from "./sqlite-open.ts";
import { Statement } from "./sqlite-statement.ts";

/** SQLite's result code for a lock of another connection. */
const SQLITE_BUSY = 5;

/**
 * One open database file and its transactions.
 * Owns: the handle, the transaction, the generation. Does not own: the queue of writes, the rows.
 *
 * Invariants
 * 1. Within a transaction or a snapshot, a value that was read or written in the current generation equals the value in the file: it need
 *    not be read again.
 * 2. The generation grows when another connection has written, which is detected at the start of each transaction and snapshot, and when
 *    a write of this connection was undone.
 */
export class SqliteConnection {
  readonly #database: DatabaseSync;
  readonly #begin: Statement;
  readonly #beginReading: Statement;
  readonly #commit: Statement;
  readonly #dataVersion: Statement;
  readonly #emptyLog: Statement;
  #generation = 1;
  #isInTransaction = false;
  #version: unknown;

  /**
   * `path`: absolute and without symbolic links, or `:memory:`. Blocks for up to some seconds while another process also opens the file,
   * or SQLite recovers it after a crash.
   */
  constructor(path: string, options: OpeningOptions) {
    this.#database = openDatabase(path, options);
    this.#begin = this.prepare("BEGIN IMMEDIATE");
    this.#beginReading = this.prepare("BEGIN");
    this.#commit = this.prepare("COMMIT");
    this.#emptyLog = this.prepare("PRAGMA wal_checkpoint(TRUNCATE)");
    this.#dataVersion = this.prepare("PRAGMA data_version");
  }

  /** The generation for values that are read or written now. Outside of transactions another process may write at any moment: 0. */
  get generation(): number {
    return this.#isInTransaction ? this.#generation : 0;
  }

  /** Whether a value of that generation equals the value in the file. */
  isCurrent(generation: number): boolean {
    return this.#isInTransaction && generation === this.#generation;
  }

  /** All values that were read or written so far become outdated. */
  invalidate(): void {
    this.#generation += 1;
  }

  prepare(sql: string): Statement {
    return new Statement(this.#database, sql);
  }

  transaction<T>(work: () => T): T {
    this.#begin.run();
    this.#isInTransaction = true;
    try {
      this.#noticeOthers();
      const result = work();
      this.#commit.run();
      return result;
    } catch (error) {
      this.invalidate();
      this.#end("ROLLBACK");
      throw error;
    } finally {
      this.#isInTransaction = false;
    }
  }

  /** Runs reads that see the file at one moment, even if other processes write in between. */
  snapshot<T>(work: () => T): T {
    this.#beginReading.run();
    this.#isInTransaction = true;
    try {
      this.#noticeOthers();
      return work();
    } finally {
      this.#isInTransaction = false;
      this.#end("COMMIT");
    }
  }

  /** The value changes when another connection has written. */
  dataVersion(): unknown {
    return this.#dataVersion.get()?.["data_version"];
  }

  /** Moves the write-ahead log into the file and empties it. Throws SQLite's busy error while another connection uses the log. */
  emptyLog(): void {
    const row = this.#emptyLog.get();
    if (row?.["busy"] !== 0) throw Object.assign(new Error("the write-ahead log is in use"), { errcode: SQLITE_BUSY });
  }

  close(): void {
    try {
      this.#database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    } catch {
      // If the disk is full, the write-ahead log stays beside the file, and the next connection reads it.
    }
    this.#database.close();
  }

  #noticeOthers(): void {
    const version = this.dataVersion();
    if (version === this.#version) return;
    this.#version = version;
    this.invalidate();
  }

  #end(how: "COMMIT" | "ROLLBACK"): void {
    try {
      if (how === "COMMIT") this.#commit.run();
      else this.#database.exec(how);
    } catch {
      // After some failures SQLite has already ended the transaction.
    }
  }
}
