import { setTimeout as delay } from "node:timers/promises";
import { backoffDelay } from "../../base/index.ts";
import { InvariantError, StoreUnavailableError } from "../../errors/index.ts";
import type { AgentKey } from "../../state/index.ts";
import { unattendedIn } from "../rules/leases.ts";
import type { ForeignWrites } from "../rules/foreign-writes.ts";
import type { Database } from "../rules/tables.ts";
import { SqliteConnection } from "./sqlite-connection.ts";
import { isBusy, isStorageFailure, translated } from "./sqlite-errors.ts";
import { prepareFile } from "./sqlite-path.ts";
import { SqlitePosts } from "./sqlite-pending.ts";
import { SqliteTables } from "./sqlite-tables.ts";

/** What `sqliteStores()` takes beside the path. */
export interface SqliteOptions {
  /**
   * How safe an acknowledged write is. `process` (the default, `synchronous = NORMAL`): it survives any end of the process, however
   * sudden; a crash of the machine may lose the last ones. `full` (`synchronous = FULL`): it survives that too, and each commit waits
   * for the disk.
   */
  readonly durability?: "process" | "full" | undefined;
  /** How long to wait for another process' lock before giving up, in milliseconds; 5,000 by default. */
  readonly busyLimitMs?: number | undefined;
  /**
   * Largest size of the file in bytes; unlimited by default. A write beyond it fails as on a full disk:
   * `StoreUnavailableError`, code `SQLITE_FULL`, nothing written.
   */
  readonly maxBytes?: number | undefined;
}

const DEFAULT_BUSY_LIMIT_MS = 5000;
/** An attempt may block for some milliseconds; the pause lets other work of this process run. */
const SHORTEST_PAUSE_MS = 2;
const pauses = { baseMs: 4, capMs: 100 };

/**
 * One database file that several processes share.
 * Owns: the order of this process' writes and the waiting for others' locks. Does not own: the rows.
 *
 * Invariants
 * 1. Writes of this process take effect in the order of the calls: while one waits for a lock, later ones wait.
 * 2. Waiting for a lock never blocks the process for more than one short attempt at a time.
 * 3. An error of SQLite is always translated; what its transaction had written is undone.
 */
export class SqliteDatabase implements Database {
  readonly tables: SqliteTables;
  readonly #path: string;
  readonly #connection: SqliteConnection;
  readonly #posts: SqlitePosts;
  readonly #foreignWrites: SqliteForeignWrites;
  readonly #busyLimitMs: number;
  /** The last queued write; undefined if none is queued. */
  #lastWrite: Promise<void> | undefined;
  #isClosed = false;

  /** `given`: as `sqliteStores` takes it. */
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
    const attempt = (): T => this.#connection.transaction(work);
    if (this.#lastWrite) return this.#enqueue(attempt);
    try {
      this.#checkOpen();
      return Promise.resolve(attempt());
    } catch (error) {
      return isBusy(error) ? this.#enqueue(attempt) : Promise.reject(translated(error, this.#path));
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

  rest(keys: readonly AgentKey[]): void {
    this.tables.rest(keys);
  }

  unattended(...[tenant, query, steady]: Parameters<Database["unattended"]>): ReturnType<Database["unattended"]> {
    return this.read(() => unattendedIn(this.tables, tenant, query, steady));
  }

  posted(keys: readonly AgentKey[]): Promise<AgentKey[]> {
    return this.read(() => this.#posts.among(keys));
  }

  onForeignWrite(listener: (writes: ForeignWrites) => void): () => void {
    return this.#foreignWrites.listen(listener);
  }

  async close(): Promise<void> {
    this.#foreignWrites.stop();
    await this.#lastWrite;
    if (this.#isClosed) return;
    this.#isClosed = true;
    try {
      this.#connection.close();
    } catch (error) {
      throw translated(error, this.#path);
    }
  }

  async #enqueue<T>(attempt: () => T): Promise<T> {
    const start = performance.now();
    const before = this.#lastWrite;
    const turn = Promise.withResolvers<void>();
    this.#lastWrite = turn.promise;
    await before;
    try {
      return await this.#untilFree(attempt, start);
    } finally {
      if (this.#lastWrite === turn.promise) this.#lastWrite = undefined;
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

/** How often to look for writes of others, in milliseconds. */
const POLL_MS = 60;

/**
 * Calls listeners when another connection has written; what it wrote is not known. Polls only while there are
 * listeners, and does not keep the process alive.
 */
class SqliteForeignWrites {
  readonly #version: () => unknown;
  readonly #listeners = new Set<(writes: ForeignWrites) => void>();
  #timer: NodeJS.Timeout | undefined;
  #last: unknown;

  /** `version` changes with every write of another connection; if it throws, this poll is skipped. */
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
