import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { Row } from "../rules/stored-values.ts";

/** The values that this package stores. */
export type StoredValue = string | number | null;
type Values = readonly StoredValue[];

/** One statement, which SQLite prepares at its first run: opening a file prepares none. */
export class Statement {
  readonly #database: DatabaseSync;
  readonly #sql: string;
  #prepared: StatementSync | undefined;

  constructor(database: DatabaseSync, sql: string) {
    this.#database = database;
    this.#sql = sql;
  }

  /** Writes, and returns the number of changed rows. */
  run(...values: Values): number {
    return Number(this.#statement.run(...values).changes);
  }

  /** Inserts a row, and returns its integer key. */
  insert(...values: Values): number {
    return Number(this.#statement.run(...values).lastInsertRowid);
  }

  get(...values: Values): Row | undefined {
    return this.#statement.get(...values);
  }

  all(...values: Values): Row[] {
    return this.#statement.all(...values);
  }

  iterate(...values: Values): Iterable<Row> {
    return this.#statement.iterate(...values);
  }

  get #statement(): StatementSync {
    this.#prepared ??= this.#database.prepare(this.#sql);
    return this.#prepared;
  }
}
