import { randomUUID } from "node:crypto";
import type { DatabaseSync, StatementSync } from "node:sqlite";
import { currentProcess, isRunning, kernelOf, startTimeOf } from "../rules/processes.ts";
import { recordsAfter } from "./sqlite-log.ts";
import { integerOf, type Row, textOf, textOrNullOf } from "../rules/stored-values.ts";

/** How long a connection counts whose process cannot be looked at, such as one of another container, in milliseconds. */
const UNSEEN_KEPT_MS = 24 * 60 * 60 * 1000;

/** How long after others were here to look whether they are gone, in milliseconds. */
const ALONE_AGAIN_MS = 500;

const where = "the list of connections";

/** What is stored of a log: how many of its records are in the database, and whether it may have more. */
export interface LogState {
  readonly id: string;
  readonly isLogging: boolean;
  readonly folded: number;
}

/**
 * The connections that write to a database, as rows of it. All methods but `logging` and `own` must run in a transaction
 * that may write.
 *
 * Invariants
 * 1. At most one connection logs. It logs from the commit of its row on, and until its row says otherwise.
 * 2. Whoever finds that another one logs says so in its row (`contest`) before he reads the log: a record whose writer
 *    has seen no other write after it is in what he reads.
 */
export class SqlitePresence {
  readonly id = randomUUID();
  readonly #statements: Readonly<
    Record<"logging" | "own" | "others" | "enter" | "contest" | "fold" | "stop" | "remove", StatementSync>
  >;
  readonly #database: DatabaseSync;
  #isEntered = false;
  #nextLook = 0;

  constructor(database: DatabaseSync) {
    this.#database = database;
    this.#statements = {
      logging: database.prepare("SELECT id, logging, folded FROM connections WHERE logging > 0"),
      own: database.prepare("SELECT id, logging, folded FROM connections WHERE id = ?"),
      others: database.prepare("SELECT id, pid, boot_id, start_time, opened_at FROM connections WHERE id <> ?"),
      enter: database.prepare("INSERT OR REPLACE INTO connections VALUES (?, ?, ?, ?, ?, ?, 0)"),
      // Another value each time, so that the file changes.
      contest: database.prepare("UPDATE connections SET logging = logging + 1 WHERE id = ?"),
      fold: database.prepare("UPDATE connections SET folded = ? WHERE id = ?"),
      stop: database.prepare("UPDATE connections SET logging = 0, folded = ? WHERE id = ?"),
      remove: database.prepare("DELETE FROM connections WHERE id = ?"),
    };
  }

  /** The log that the newest part of the database may be in. */
  logging(): LogState | undefined {
    const row = this.#statements.logging.get();
    return row && stateOf(row);
  }

  own(): LogState | undefined {
    const row = this.#statements.own.get(this.id);
    return row && stateOf(row);
  }

  /** Says that this connection writes too. */
  enter(): void {
    if (this.#isEntered) return;
    this.#put(false);
    this.#isEntered = true;
  }

  /** After a rollback. */
  forget(): void {
    this.#isEntered = false;
  }

  /** Others are here: for some time it is not looked whether they are gone. */
  noteOthers(): void {
    this.#nextLook = performance.now() + ALONE_AGAIN_MS;
  }

  /** Whether nobody else writes, as far as was looked; forgets those that are gone. */
  isAlone(): boolean {
    if (performance.now() < this.#nextLook) return false;
    this.noteOthers();
    for (const row of this.#statements.others.all(this.id)) {
      if (isThere(row)) return false;
      this.#statements.remove.run(textOf(row, "id", where));
    }
    return true;
  }

  startLogging(): void {
    this.#put(true);
    this.#isEntered = true;
  }

  /** Says in the row of the one that logs, if there is one, that another one writes; the log may be read after the commit of it. */
  contest(): void {
    const found = this.logging();
    if (found) this.#statements.contest.run(found.id);
    this.enter();
  }

  /** Brings the log of another one into the database, if it is still there, and closes it. */
  takeOver(path: string): void {
    this.noteOthers();
    const state = this.logging();
    if (state) this.stopLogging(state.id, foldLogOf(this.#database, state, path));
  }

  /** The records up to this one are in the database. */
  fold(folded: number): void {
    this.#statements.fold.run(folded, this.id);
  }

  /** The same, and there will be no more of them. */
  stopLogging(id: string, folded: number): void {
    this.#statements.stop.run(folded, id);
  }

  leave(): void {
    this.#statements.remove.run(this.id);
    this.#isEntered = false;
  }

  #put(isLogging: boolean): void {
    const { pid, bootId } = currentProcess("");
    this.#statements.enter.run(this.id, pid, bootId, startTimeOf(pid), Date.now(), isLogging ? 1 : 0);
  }
}

function isThere(row: Row): boolean {
  const [bootId, own] = [textOf(row, "boot_id", where), currentProcess("").bootId];
  if (kernelOf(bootId) !== kernelOf(own)) return false;
  if (bootId !== own) return Date.now() - integerOf(row, "opened_at", where) < UNSEEN_KEPT_MS;
  return isRunning({ pid: integerOf(row, "pid", where), startTime: textOrNullOf(row, "start_time", where) });
}

function stateOf(row: Row): LogState {
  return {
    id: textOf(row, "id", where),
    isLogging: integerOf(row, "logging", where) > 0,
    folded: integerOf(row, "folded", where),
  };
}

/** Brings what is in a log into the database; gives the number of its last record. */
function foldLogOf(database: DatabaseSync, { id, folded }: LogState, path: string): number {
  const statements = new Map<string, StatementSync>();
  let last = folded;
  for (const { number, writes } of recordsAfter(path, id, folded)) {
    for (const { sql, values } of writes) {
      const statement = statements.get(sql) ?? database.prepare(sql);
      statements.set(sql, statement);
      statement.run(...values);
    }
    last = number;
  }
  return last;
}
