import type { DatabaseSync, StatementSync } from "node:sqlite";
import { isStorageFailure } from "./sqlite-errors.ts";
import { BUSY_TIMEOUT_MS, LONG_TIMEOUT_MS } from "./sqlite-open.ts";

/** The transactions of SQLite itself on one open file, and whether other connections have written to it. */
export class SqliteTransactions {
  readonly #database: DatabaseSync;
  readonly #statements: Readonly<
    Record<"begin" | "beginReading" | "commit" | "save" | "keep" | "undo" | "version", StatementSync>
  >;
  /** As of when it was last noticed. */
  #version: unknown;

  constructor(database: DatabaseSync) {
    this.#database = database;
    this.#statements = {
      begin: database.prepare("BEGIN IMMEDIATE"),
      beginReading: database.prepare("BEGIN"),
      commit: database.prepare("COMMIT"),
      save: database.prepare("SAVEPOINT part"),
      keep: database.prepare("RELEASE part"),
      undo: database.prepare("ROLLBACK TO part"),
      version: database.prepare("PRAGMA data_version"),
    };
    // Older versions of Node.js give rows as objects alone, which cost more to make than the statement.
    if ("setReturnArrays" in this.#statements.version) this.#statements.version.setReturnArrays(true);
  }

  begin(): void {
    this.#statements.begin.run();
  }

  beginReading(): void {
    this.#statements.beginReading.run();
  }

  commit(): void {
    this.#statements.commit.run();
  }

  undo(): void {
    try {
      this.#database.exec("ROLLBACK");
    } catch {
      // After some failures SQLite has rolled back by itself.
    }
  }

  endReading(): void {
    try {
      this.#statements.commit.run();
    } catch {
      // After some failures SQLite has ended the transaction by itself.
    }
  }

  /** A part of the open transaction: what it has written is undone when it throws. */
  part<T>(work: () => T, forget: () => void): T {
    this.#statements.save.run();
    try {
      const result = work();
      this.#statements.keep.run();
      return result;
    } catch (error) {
      if (!isStorageFailure(error)) {
        this.#statements.undo.run();
        this.#statements.keep.run();
        forget();
      }
      throw error;
    }
  }

  /** Changes when another connection has written. */
  dataVersion(): unknown {
    const row = this.#statements.version.get();
    return Array.isArray(row) ? row[0] : row?.["data_version"];
  }

  /** Whether others have written since that was last noticed. */
  isChanged(): boolean {
    return this.dataVersion() !== this.#version;
  }

  notice(): boolean {
    const version = this.dataVersion();
    if (version === this.#version) return false;
    this.#version = version;
    return true;
  }

  /** The next question will be answered as if others had written. */
  doubt(): void {
    this.#version = undefined;
  }

  /** Locks of others are waited for, which blocks this process. */
  waitLong(): void {
    this.#database.exec(`PRAGMA busy_timeout = ${LONG_TIMEOUT_MS}`);
  }

  waitShort(): void {
    this.#database.exec(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
  }
}
