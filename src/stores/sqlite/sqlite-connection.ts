import type { DatabaseSync } from "node:sqlite";
import type { AgentKey } from "../../state/index.ts";
import { isBusy, isStorageFailure, unknownOutcome } from "./sqlite-errors.ts";
import { LaterWrites } from "./later-writes.ts";
import { logPathOf, removeLog, SqliteLog } from "./sqlite-log.ts";
import { openDatabase, type OpeningOptions } from "./sqlite-open.ts";
import { IN_MEMORY } from "./sqlite-path.ts";
import { SqlitePresence } from "./sqlite-presence.ts";
import { Statement, type StatementDoor, type Write } from "./sqlite-statement.ts";
import { SqliteTransactions } from "./sqlite-transactions.ts";

/** Bytes of records at which they are brought into the database at once. */
const LONGEST_LOG = 256 * 1024;

/** Others have written: what was made up of what is cached here does not count. */
class Contested extends Error {}

/**
 * One open database file, its transactions, and the log in front of it.
 * Owns: the handle, the transaction, the generation, the writes that wait. Does not own: the queue of writes, the rows.
 *
 * While this connection is the only one, it *logs*: what a transaction writes is appended to a log of its own, and brought
 * into the database (*folded*) with that of many others. Reads that no cache answers fold first.
 *
 * Invariants
 * 1. A transaction sees the newest state of all connections, and what it has read stays true until it ends. With the lock of
 *    SQLite that is so from its start; while this connection logs it is so because nobody else has written, which is looked
 *    up once the record is written. Who writes in the meantime has first said that he will, and reads the log after that.
 * 2. The generation grows when another connection has written, which is noticed at the start of a transaction and of a
 *    snapshot: within them, a value of the current generation need not be read again.
 * 3. After a rollback `forget` is called, because caches may hold what was undone.
 * 4. The writes of transactions take effect in the order of their records.
 */
export class SqliteConnection implements StatementDoor {
  readonly database: DatabaseSync;
  generation = 1;
  forget: () => void = () => {};
  /** Forgets what is cached of the trees of these agents; it is read again where it is needed. */
  rest: (keys: readonly AgentKey[]) => void = () => {};
  readonly #path: string;
  readonly #presence: SqlitePresence;
  readonly #mayLog: boolean;
  readonly #file: SqliteTransactions;
  /** `light`: a transaction of which SQLite knows nothing yet; `looking`: such a snapshot. */
  #phase: "idle" | "light" | "looking" | "file" = "idle";
  #hasReadAside = false;
  #log: SqliteLog | undefined;
  /** The number of the last record. */
  #number = 0;
  /** The writes that are in the log and not in the database, then those of the light transaction. */
  readonly #later: LaterWrites;
  /** Whether the database did not take what is in the log: then nothing is added to it. */
  #isStuck = false;

  private constructor(database: DatabaseSync, path: string, mayLog: boolean) {
    this.database = database;
    this.#path = path;
    this.#mayLog = mayLog;
    this.#presence = new SqlitePresence(database);
    this.#file = new SqliteTransactions(database);
    this.#later = new LaterWrites(() => this.#foldInTime());
  }

  /**
   * `path`: absolute and without symbolic links, or `:memory:`. Blocks for up to some seconds while another process opens the file
   * too, or SQLite repairs it after a crash.
   */
  static open(path: string, options: OpeningOptions): SqliteConnection {
    const database = openDatabase(path, options);
    try {
      // A commit that waits for the disk costs the same in either file, and a limit must refuse the write that is beyond it.
      const mayLog = path !== IN_MEMORY && options.durability !== "full" && options.maxBytes === undefined;
      return new SqliteConnection(database, path, mayLog);
    } catch (error) {
      database.close();
      throw error;
    }
  }

  /** Whether a transaction or a snapshot is open. */
  get isInTransaction(): boolean {
    return this.#phase !== "idle";
  }

  /** `sets`: for a statement that writes one row, which its last value names: the columns, or groups of columns, that it sets. */
  prepare(sql: string, sets: readonly string[] = []): Statement {
    return new Statement(this.database, this, sql, sets);
  }

  transaction<T>(work: () => T): T {
    for (;;) {
      if (this.#log === undefined) return this.#direct(work);
      if (this.#isStuck || this.#log.size >= LONGEST_LOG) this.#foldOrLeave();
      const done = this.#log && this.#light(work, this.#log);
      if (done) return done.result;
    }
  }

  /** Runs reads that see the file at one moment, even if others write meanwhile. */
  snapshot<T>(work: () => T): T {
    if (this.#log !== undefined) {
      const done = this.#look(work);
      if (done) return done.result;
    }
    this.#beginReading();
    try {
      return work();
    } finally {
      this.#phase = "idle";
      this.#file.endReading();
    }
  }

  part<T>(work: () => T): T {
    this.needFile();
    return this.#file.part(work, () => this.forget());
  }

  later(write: Write): boolean {
    if (this.#phase !== "light") return false;
    this.#later.push(write);
    return true;
  }

  needFile(): void {
    if (this.#phase === "light") {
      this.#file.begin();
      this.#phase = "file";
      this.#checkUncontested();
      this.#later.run();
    } else if (this.#phase === "looking") {
      if (this.#later.length > 0) this.#fold();
      this.#file.beginReading();
      this.#phase = "file";
      this.#checkUncontested();
    }
  }

  readAside(): void {
    this.#hasReadAside = true;
  }

  /** Notes that a row of this name is written: `isLater` says so until it is in the database. */
  noteRow(name: string): void {
    if (this.#phase === "light") this.#later.noteRow(name);
  }

  isLater(name: string): boolean {
    return this.#later.hasRow(name);
  }

  /** Changes when another connection has written. */
  dataVersion(): unknown {
    return this.#file.dataVersion();
  }

  close(): void {
    try {
      this.#file.waitLong();
      if (this.#log) this.#leaveLog();
      this.#file.begin();
      this.#presence.leave();
      // Now that nobody can begin one, a log that nobody uses can go.
      if (this.#mayLog && this.#presence.logging() === undefined) removeLog(logPathOf(this.#path));
      this.#file.commit();
      this.database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    } catch {
      // On a disk without room the logs stay beside the file: whoever opens it next reads all of them.
    }
    this.database.close();
  }

  #direct<T>(work: () => T): T {
    this.#beginNewest();
    let log: SqliteLog | undefined;
    try {
      const result = work();
      this.#presence.enter();
      log = this.#startedLog();
      this.#file.commit();
      this.#log = log;
      return result;
    } catch (error) {
      log?.close();
      this.#rollback();
      throw error;
    } finally {
      this.#phase = "idle";
    }
  }

  /** Undefined: others have written, so that the work is to be done again. */
  #light<T>(work: () => T, log: SqliteLog): { readonly result: T } | undefined {
    const start = this.#later.length;
    this.#phase = "light";
    let result: T;
    try {
      result = work();
      if (this.#isOnFile()) {
        this.#commitFold();
        return { result };
      }
      if (this.#later.length > start) {
        log.append(this.#number + 1, this.#later.list, start);
        this.#number += 1;
        this.#later.runSoon();
      }
      if (!this.#file.isChanged()) return { result };
    } catch (error) {
      const isLight = this.#phase === "light";
      if (isLight) this.forget();
      else this.#rollback();
      this.#later.cutTo(start);
      // What was refused may have been refused for what is not so any more.
      const isOld = error instanceof Contested || (isLight && !isStorageFailure(error) && this.#file.isChanged());
      if (!isOld) throw error;
      this.#leaveLog();
      return undefined;
    } finally {
      this.#phase = "idle";
    }
    return this.#settle(start) ? { result } : undefined;
  }

  /** Whether a record counts after which others were seen to have written. */
  #settle(start: number): boolean {
    try {
      return this.#leaveLog(start);
    } catch (error) {
      // It stays in the log, so that it may count: the work must not be done again.
      throw isBusy(error) ? unknownOutcome(error, this.#path) : error;
    }
  }

  /** The same for a snapshot. */
  #look<T>(work: () => T): { readonly result: T } | undefined {
    try {
      if (!this.#file.isChanged()) {
        this.#phase = "looking";
        this.#hasReadAside = false;
        const result = work();
        if (this.#isOnFile() || !this.#hasReadAside || !this.#file.isChanged()) return { result };
      }
    } catch (error) {
      if (!(error instanceof Contested)) throw error;
    } finally {
      if (this.#isOnFile()) this.#file.endReading();
      this.#phase = "idle";
    }
    this.#leaveLog();
    return undefined;
  }

  #isOnFile(): boolean {
    return this.#phase === "file";
  }

  /** Begins a transaction on the newest state, also if that is in another one's log. */
  #beginNewest(): void {
    this.#file.begin();
    this.#phase = "file";
    try {
      if (!this.#noticeOthers() || this.#presence.logging() === undefined) return;
      this.#takeOver();
    } catch (error) {
      this.#rollback();
      this.#phase = "idle";
      // The log that was not taken over is looked for again.
      this.#file.doubt();
      throw error;
    }
  }

  #beginReading(): void {
    try {
      for (;;) {
        this.#file.beginReading();
        this.#phase = "file";
        if (!this.#noticeOthers() || this.#presence.logging() === undefined) return;
        this.#file.endReading();
        this.#file.doubt();
        this.#beginNewest();
        this.#file.commit();
      }
    } catch (error) {
      this.#file.undo();
      this.#phase = "idle";
      this.#file.doubt();
      throw error;
    }
  }

  /** Brings what is in the log of another one into the database. In a transaction, which it ends, to begin another one. */
  #takeOver(): void {
    this.#presence.contest();
    this.#file.commit();
    this.#file.begin();
    this.#presence.takeOver(logPathOf(this.#path));
    this.generation += 1;
    this.#file.notice();
  }

  /** A log of this connection, if it is alone; it counts once the transaction is committed. */
  #startedLog(): SqliteLog | undefined {
    if (!this.#mayLog || !this.#presence.isAlone()) return undefined;
    const log = SqliteLog.tryCreate(logPathOf(this.#path), this.#presence.id);
    if (!log) return undefined;
    this.#presence.startLogging();
    this.#number = 0;
    return log;
  }

  /**
   * Ends logging, because others are here. `start`: where the writes of a record begin that was written when they came.
   * Says whether one of them has brought it into the database; else it does not count.
   */
  #leaveLog(start = this.#later.length): boolean {
    let isKept = false;
    try {
      this.#file.waitLong();
      this.#file.begin();
      const own = this.#presence.own();
      if (own?.isLogging) {
        this.#later.run(start);
        this.#presence.stopLogging(this.#presence.id, this.#number);
      } else isKept = own !== undefined && start < this.#later.length && own.folded >= this.#number;
      this.#file.commit();
    } catch (error) {
      this.#rollback();
      throw error;
    } finally {
      this.#file.waitShort();
    }
    this.#log?.close();
    this.#log = undefined;
    this.#isStuck = false;
    this.#presence.noteOthers();
    this.#later.clear();
    this.forget();
    this.generation += 1;
    this.#file.doubt();
    return isKept;
  }

  #fold(): void {
    if (this.#later.length === 0) return;
    this.#file.begin();
    try {
      this.#checkUncontested();
      this.#later.run();
      this.#commitFold();
    } catch (error) {
      this.#file.undo();
      throw error;
    }
  }

  #foldOrLeave(): void {
    try {
      this.#fold();
    } catch (error) {
      if (!(error instanceof Contested)) throw error;
      this.#leaveLog();
    }
  }

  /** Ends a transaction in which all that waited was written. */
  #commitFold(): void {
    this.#presence.fold(this.#number);
    this.#file.commit();
    this.#log?.restart();
    this.#isStuck = false;
    this.#later.clear();
  }

  #foldInTime(): void {
    try {
      this.#foldOrLeave();
    } catch (error) {
      // Whoever writes next is told; a lock passes.
      if (!isBusy(error)) this.#isStuck = true;
      this.#later.runSoon();
    }
  }

  #checkUncontested(): void {
    if (this.#file.isChanged()) throw new Contested();
  }

  /** Whether others have written since it was last asked. */
  #noticeOthers(): boolean {
    if (!this.#file.notice()) return false;
    this.generation += 1;
    return true;
  }

  #rollback(): void {
    this.forget();
    this.#presence.forget();
    this.#file.undo();
  }
}
