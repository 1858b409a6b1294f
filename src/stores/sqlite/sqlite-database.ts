import { setTimeout as delay } from "node:timers/promises";
import { backoffDelay } from "../../base/index.ts";
import { InvariantError, StoreUnavailableError } from "../../errors/index.ts";
import type { AgentKey } from "../../state/index.ts";
import { unattendedIn } from "../rules/leases.ts";
import type { ForeignWrites } from "../rules/foreign-writes.ts";
import type { Database } from "../rules/tables.ts";
import { SqliteConnection } from "./sqlite-connection.ts";
import { isBusy, translated } from "./sqlite-errors.ts";
import { prepareFile } from "./sqlite-path.ts";
import { SqlitePosts } from "./sqlite-pending.ts";
import { SqliteTables } from "./sqlite-tables.ts";

/** Options of `sqliteStores()`. */
export interface SqliteOptions {
  /**
   * How safe an acknowledged write is. `process` (`synchronous = NORMAL`): it survives any end of the process, however sudden; a crash of
   * the machine may lose the last writes. `full` (`synchronous = FULL`): it also survives that, and each commit waits for the disk.
   * Default `process`.
   */
  readonly durability?: "process" | "full" | undefined;
  /** How long to wait for another process's lock, in milliseconds. Default 5,000. */
  readonly busyLimitMs?: number | undefined;
  /**
   * Largest size of the file in bytes. A write beyond it fails as on a full disk: `StoreUnavailableError`, code `SQLITE_FULL`, nothing
   * written. Default: no limit.
   */
  readonly maxBytes?: number | undefined;
}

const DEFAULT_BUSY_LIMIT_MS = 5000;
/** An attempt may block for some milliseconds; the pause lets other work of this process run. */
const SHORTEST_PAUSE_MS = 2;
const pauses = { baseMs: 4, capMs: 100 };

/** A write that is not done yet, and its caller. */
interface PendingWrite {
  /** When it was requested, by `performance.now()`. */
  readonly since: number;
  /** Does the work inside a transaction; returns the function that resolves the caller's promise, to be called after the commit. */
  readonly run: () => () => void;
  readonly fail: (error: unknown) => void;
}

interface Blocked {
  readonly writes: readonly PendingWrite[];
  /** The error of SQLite. */
  readonly error: unknown;
}

/**
 * One database file that several processes share.
 * Owns: the order of this process's writes and waiting for others' locks. Does not own: the rows.
 *
 * Invariants
 * 1. Writes of this process take effect in the order of the calls: while one waits for a lock, later ones wait.
 * 2. Waiting for a lock never blocks the process for more than one short attempt at a time.
 * 3. SQLite errors are always translated, and the changes of their transaction are undone.
 * 4. Writes that are requested at the same moment, or while waiting for a lock, share a transaction. If one of them throws, each is
 *    repeated in a separate transaction.
 */
export class SqliteDatabase implements Database {
  readonly tables: SqliteTables;
  readonly spansTrees = true;
  readonly #path: string;
  readonly #connection: SqliteConnection;
  readonly #posts: SqlitePosts;
  readonly #foreignWrites: SqliteForeignWrites;
  readonly #busyLimitMs: number;
  /** In the order of the calls. */
  #pending: PendingWrite[] = [];
  /** Settles when no write waits for a lock; `undefined` if none waits. */
  #waiting: Promise<void> | undefined;
  #isClosed = false;

  /** `given`: the path as passed to `sqliteStores`. */
  constructor(given: string, options: SqliteOptions) {
    const path = prepareFile(given);
    this.#path = path;
    this.#busyLimitMs = options.busyLimitMs ?? DEFAULT_BUSY_LIMIT_MS;
    try {
      this.#connection = new SqliteConnection(path, options);
      this.tables = new SqliteTables(this.#connection);
      this.#posts = new SqlitePosts(this.#connection);
    } catch (error) {
      throw translated(error, path);
    }
    this.#foreignWrites = new SqliteForeignWrites(() => this.#connection.dataVersion());
  }

  write<T>(work: () => T): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const run = (): (() => void) => {
      const result = work();
      return () => resolve(result);
    };
    this.#pending.push({ since: performance.now(), run, fail: reject });
    // Runs after the promise callbacks that are due now, and thus after their writes were requested: one commit resumes many callers at
    // once.
    if (this.#pending.length === 1) queueMicrotask(() => this.#writePending());
    return promise;
  }

  async read<T>(work: () => T): Promise<T> {
    this.#writePending();
    return this.#untilFree(() => this.#connection.snapshot(work), performance.now());
  }

  rest(keys: readonly AgentKey[]): void {
    this.tables.rest(keys);
  }

  dropTree(key: AgentKey): void {
    this.tables.rest([key]);
  }

  unattended(...[tenant, query, steady]: Parameters<Database["unattended"]>): ReturnType<Database["unattended"]> {
    return this.read(() => unattendedIn(this.tables, tenant, query, steady));
  }

  posted(keys: readonly AgentKey[]): Promise<AgentKey[]> {
    return this.read(() => this.#posts.among(keys));
  }

  /** Deleted rows are overwritten in the file; their old pages are in the write-ahead log until it is emptied. */
  async scrub(): Promise<void> {
    this.#writePending();
    await this.#waiting;
    await this.#untilFree(() => this.#connection.emptyLog(), performance.now());
  }

  onForeignWrite(listener: (writes: ForeignWrites) => void): () => void {
    return this.#foreignWrites.listen(listener);
  }

  async close(): Promise<void> {
    this.#foreignWrites.stop();
    this.#writePending();
    await this.#waiting;
    if (this.#isClosed) return;
    this.#isClosed = true;
    try {
      this.#connection.close();
    } catch (error) {
      throw translated(error, this.#path);
    }
  }

  /** Does the pending writes, unless earlier writes wait for a lock. */
  #writePending(): void {
    if (this.#waiting || this.#pending.length === 0) return;
    const blocked = this.#attempt(this.#takePending());
    if (blocked) this.#waiting = this.#writeWhenFree(blocked);
  }

  #takePending(): readonly PendingWrite[] {
    const writes = this.#pending;
    this.#pending = [];
    return writes;
  }

  /** Does writes in one transaction, or each in a separate one if one of them fails. Returns those that another process's lock blocks. */
  #attempt(writes: readonly PendingWrite[]): Blocked | undefined {
    if (writes.length === 0) return undefined;
    try {
      this.#checkOpen();
      for (const succeed of this.#connection.transaction(() => writes.map(({ run }) => run()))) succeed();
      return undefined;
    } catch (error) {
      if (isBusy(error)) return { writes, error };
      const [only, ...others] = writes;
      if (only && others.length === 0) only.fail(translated(error, this.#path));
      else return this.#attemptEach(writes);
      return undefined;
    }
  }

  #attemptEach(writes: readonly PendingWrite[]): Blocked | undefined {
    for (const [index, write] of writes.entries()) {
      const blocked = this.#attempt([write]);
      if (blocked) return { ...blocked, writes: writes.slice(index) };
    }
    return undefined;
  }

  async #writeWhenFree(first: Blocked): Promise<void> {
    let blocked: Blocked | undefined = first;
    for (let failures = 1; blocked; failures += 1) {
      const { writes, error }: Blocked = blocked;
      const earliest = performance.now() - this.#busyLimitMs;
      for (const write of writes) if (write.since <= earliest) write.fail(this.#gaveUp(error));
      await delay(SHORTEST_PAUSE_MS + backoffDelay(failures, Math.random(), pauses));
      const left = writes.filter(({ since }) => since > earliest);
      blocked = this.#attempt([...left, ...this.#takePending()]);
    }
    this.#waiting = undefined;
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
    if (this.#isClosed) throw new InvariantError(`the store ${this.#path} is closed`);
  }
}

/** How often to check for writes of other processes, in milliseconds. */
const POLL_MS = 60;

/**
 * Calls listeners when another connection has written; the written data is unknown. Polls only while there are listeners, and does not
 * keep the process alive.
 */
class SqliteForeignWrites {
  readonly #version: () => unknown;
  readonly #listeners = new Set<(writes: ForeignWrites) => void>();
  #timer: NodeJS.Timeout | undefined;
  #last: unknown;

  /** The result of `version` changes with every write of another connection; if it throws, this poll is skipped. */
  constructor(version: () => unknown) {
    this.#version = version;
  }

  listen(listener: (writes: ForeignWrites) => void): () => void {
    // A wrapper, so that the same listener can be added twice.
    const entry = (writes: ForeignWrites): void => listener(writes);
    this.#listeners.add(entry);
    if (!this.#timer) {
      this.#last = this.#look();
      this.#timer = setInterval(() => this.#poll(), POLL_MS);
      this.#timer.unref();
    }
    return () => {
      this.#listeners.delete(entry);
      if (this.#listeners.size === 0) this.stop();
    };
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#listeners.clear();
  }

  #poll(): void {
    const version = this.#look();
    if (version === undefined || version === this.#last) return;
    this.#last = version;
    for (const listener of this.#listeners) listener("any");
  }

  #look(): unknown {
    try {
      return this.#version();
    } catch {
      return undefined;
    }
  }
}
