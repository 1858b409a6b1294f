import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { Row } from "../rules/stored-values.ts";

/** What a statement needs to know of the transaction that it is a part of. */
export interface StatementDoor {
  /** Takes a write to be done later; false if it must be done now. */
  later(write: Write): boolean;
  /** Makes sure that the file has everything that was written so far, and that a transaction on it is open. */
  needFile(): void;
  /** Notes that the file was read as it is, without what is to be written later. */
  readAside(): void;
}

/** What this package stores: numbers, texts and nothing. */
export type StoredValue = string | number | null;
type Values = readonly StoredValue[];

/** A statement that was asked for and not run yet. */
export interface Write {
  readonly statement: Statement;
  readonly values: Values;
}

/**
 * One statement, which SQLite prepares when it is first run.
 *
 * Invariants
 * 1. A write takes effect in the order of the calls, at once or later; who reads has needed the file before.
 * 2. Values of a write that may come later are not changed: they are numbers and texts.
 */
export class Statement {
  readonly sql: string;
  /** For a write to one row, which its last value names: the table, and a bit for each group of columns that it sets. */
  readonly row: { readonly table: string; readonly sets: number } | undefined;
  readonly #database: DatabaseSync;
  readonly #door: StatementDoor;
  #prepared: StatementSync | undefined;

  constructor(database: DatabaseSync, door: StatementDoor, sql: string, sets: readonly string[]) {
    this.#database = database;
    this.#door = door;
    this.sql = sql;
    const table = /^UPDATE (\w+)/.exec(sql)?.[1];
    if (table !== undefined && sets.length > 0) this.row = { table, sets: bitsOf(sets) };
  }

  /** Writes, now or later. */
  run(...values: Values): void {
    if (!this.#door.later({ statement: this, values })) this.runNow(values);
  }

  /** Writes now, and says how many rows it has changed. */
  change(...values: Values | [Readonly<Record<string, StoredValue>>]): number {
    this.#door.needFile();
    return Number(this.#statement.run(...(values as Values)).changes);
  }

  /** What was taken to be done later. */
  runNow(values: Values): void {
    this.#statement.run(...values);
  }

  get(...values: Values | [Readonly<Record<string, StoredValue>>]): Row | undefined {
    this.#door.needFile();
    return this.#statement.get(...(values as Values));
  }

  /** The same of rows of which nothing is to be written later. */
  getAside(...values: Values): Row | undefined {
    this.#door.readAside();
    return this.#statement.get(...values);
  }

  all(...values: Values | [Readonly<Record<string, StoredValue>>]): Row[] {
    this.#door.needFile();
    return this.#statement.all(...(values as Values));
  }

  iterate(...values: Values | [Readonly<Record<string, StoredValue>>]): Iterable<Row> {
    this.#door.needFile();
    return this.#statement.iterate(...(values as Values));
  }

  get #statement(): StatementSync {
    this.#prepared ??= this.#database.prepare(this.sql);
    return this.#prepared;
  }
}

const bits = new Map<string, number>();

function bitsOf(groups: readonly string[]): number {
  let sum = 0;
  for (const group of groups) {
    const bit = bits.get(group) ?? 1 << bits.size;
    bits.set(group, bit);
    sum |= bit;
  }
  return sum;
}
