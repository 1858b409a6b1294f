import { setTimeout as delay } from "node:timers/promises";
import type { Client, Pool, PoolClient } from "pg";
import { backoffDelay, optionalPackage } from "../base/index.ts";
import { InvariantError, StoreUnavailableError } from "../errors/index.ts";
import { endsConnection, isTimeout, isWorthRepeating, translated } from "./postgres-errors.ts";
import type { ClientSettings } from "./postgres-location.ts";
import { type Query, queryOf, type Row, type Statement, within } from "./postgres-query.ts";

const pauses = { baseMs: 5, capMs: 250 };
const IDLE_MS = 60_000;

/** A component that uses Postgres. */
export interface PostgresUser {
  readonly client: ClientSettings;
  readonly maxConnections: number;
  /** How long a statement may take, including retries, in milliseconds. */
  readonly timeoutMs: number;
  /** The component's name in errors: "the stores". */
  readonly name: string;
  /** Beginning of the error message if `pg` is missing: "Postgres stores need". */
  readonly needing: string;
  /** Checks the server and migrates, once; rejects if the server is unsuitable. */
  readonly check: (query: Query) => Promise<void>;
}

/**
 * The connections to Postgres.
 * Owns: the pool, checking the server once, waiting and repeating. Does not own: the meaning of statements.
 *
 * Invariants
 * 1. Every call ends within `timeoutMs`: with its answer, or with an error of this package.
 * 2. Only `read` repeats a statement; `attempt` sends it once, because it may have been applied before the connection broke.
 * 3. A connection on which a call failed without an answer is closed, so that its transaction ends.
 */
export class PostgresConnection {
  readonly timeoutMs: number;
  readonly #user: PostgresUser;
  readonly #ready = new WeakSet<PoolClient>();
  #pool: Promise<Pool> | undefined;
  #check: Promise<void> | undefined;
  #isClosed = false;

  constructor(user: PostgresUser) {
    this.#user = user;
    this.timeoutMs = user.timeoutMs;
  }

  /** Runs a command that may be applied twice, again until the time limit while the server does not answer. */
  async repeat<T>(command: () => Promise<T>): Promise<T> {
    return await this.#repeated(async (end) => {
      this.#assertOpen();
      this.#check ??= this.#checked();
      await inTime(end, this.#check);
      return await inTime(end, command());
    });
  }

  /** Sends a statement that changes nothing, or may be applied twice, again until the time limit while the server does not answer. */
  async read(statement: Statement, values: readonly unknown[]): Promise<readonly Row[]> {
    return await this.#repeated((end) => this.#once(end, (query) => query(statement, values)));
  }

  /** Runs reads that see the database at one moment. */
  async snapshot<T>(work: (query: Query) => Promise<T>): Promise<T> {
    return await this.#repeated((end) =>
      this.#once(end, (query) => within(query, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", () => work(query))),
    );
  }

  /** Runs statements on one connection, once. Rejects with the driver's error. */
  async attempt<T>(work: (query: Query) => Promise<T>, ms = this.timeoutMs): Promise<T> {
    return await this.#once(performance.now() + ms, work);
  }

  /** Waits for the server and the check of it. Throws the package's errors. */
  async reach(): Promise<void> {
    await this.#repeated((end) => this.#once(end, async () => undefined));
  }

  /** Opens a connection outside of the pool; the caller ends it. */
  async another(): Promise<Client> {
    this.#assertOpen();
    await this.reach();
    return await this.#connected();
  }

  /** Opens a pool, which the caller ends. `settings` are added to the client's. */
  async anotherPool(settings: ClientSettings): Promise<Pool> {
    this.#assertOpen();
    return await this.#open(settings);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await (await this.#pool?.catch(() => undefined))?.end();
  }

  async #repeated<T>(attempt: (end: number) => Promise<T>): Promise<T> {
    const end = performance.now() + this.timeoutMs;
    let reason: unknown;
    for (let failures = 1; ; failures += 1) {
      try {
        return await attempt(end);
      } catch (error) {
        // The last attempt is cut short; an earlier one says why there is no answer.
        if (isTimeout(error)) throw translated(reason ?? error, this.#user.name);
        reason = error;
        const pause = 1 + backoffDelay(failures, Math.random(), pauses);
        if (this.#isClosed || !isWorthRepeating(error) || performance.now() + pause >= end)
          throw translated(error, this.#user.name);
        await delay(pause);
      }
    }
  }

  async #once<T>(end: number, work: (query: Query) => Promise<T>): Promise<T> {
    this.#assertOpen();
    // Goes on after the time limit of a call: migrating many rows may take longer.
    this.#check ??= this.#checked();
    await inTime(end, this.#check);
    const client = await this.#client(end);
    let isLost = true;
    try {
      const result = await inTime(end, work(queryOf(client)));
      isLost = false;
      return result;
    } catch (error) {
      isLost = endsConnection(error);
      throw error;
    } finally {
      client.release(isLost);
    }
  }

  async #client(end: number): Promise<PoolClient> {
    const pool = await this.#opened();
    const connecting = pool.connect();
    let client: PoolClient;
    try {
      client = await inTime(end, connecting);
    } catch (error) {
      connecting.then((late) => late.release()).catch(() => undefined);
      throw error;
    }
    try {
      if (!this.#ready.has(client)) {
        await inTime(end, this.#prepare(client));
        this.#ready.add(client);
      }
      return client;
    } catch (error) {
      client.release(true);
      throw error;
    }
  }

  /** Statements of a process that stands still must not block others for long. */
  async #prepare(client: PoolClient): Promise<void> {
    const limit = String(this.timeoutMs);
    await queryOf(client)(sessionStatement, [limit, limit, "read committed"]);
  }

  async #checked(): Promise<void> {
    try {
      const client = await this.#connected();
      try {
        await this.#user.check(queryOf(client));
      } finally {
        await client.end();
      }
    } catch (error) {
      this.#check = undefined;
      throw error;
    }
  }

  async #connected(): Promise<Client> {
    const { Client: PgClient } = await loaded(this.#user.needing)();
    const client = new PgClient(this.#settings());
    client.on("error", () => undefined);
    await client.connect();
    return client;
  }

  async #opened(): Promise<Pool> {
    this.#pool ??= this.#open({ max: this.#user.maxConnections });
    return await this.#pool;
  }

  async #open(settings: ClientSettings): Promise<Pool> {
    const { Pool: PgPool } = await loaded(this.#user.needing)();
    const pool = new PgPool({ ...this.#settings(), idleTimeoutMillis: IDLE_MS, ...settings });
    // The statements that fail report the error.
    pool.on("error", () => undefined);
    // A server that dies may say so in the packet that ends the login; the pool itself listens only to idle connections.
    pool.on("connect", (client) => client.on("error", () => undefined));
    return pool;
  }

  #settings(): Record<string, unknown> {
    return {
      application_name: "troupe",
      keepAlive: true,
      connectionTimeoutMillis: this.timeoutMs,
      ...this.#user.client,
    };
  }

  #assertOpen(): void {
    if (this.#isClosed) throw new InvariantError(`${this.#user.name} are closed`);
  }
}

const sessionStatement: Statement = {
  name: "",
  text: `SELECT set_config('statement_timeout', $1, false), set_config('idle_in_transaction_session_timeout', $2, false),
    set_config('default_transaction_isolation', $3, false)`,
};

/** Rejects with `StoreUnavailableError` at `end` (of `performance.now()`); the later result is ignored. */
async function inTime<T>(end: number, work: Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(tooLate()), Math.max(0, end - performance.now()));
  work.catch(() => undefined);
  try {
    return await Promise.race([work, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

function tooLate(): StoreUnavailableError {
  return new StoreUnavailableError("Postgres did not answer in time", { details: { code: "ETIMEDOUT" } });
}

const loaded = (needing: string) =>
  optionalPackage(async () => (await import("pg")).default, `${needing} the package "pg": npm install pg`);
