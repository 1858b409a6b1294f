import { setTimeout as delay } from "node:timers/promises";
import type { Client, Pool, PoolClient } from "pg";
import { backoffDelay, optionalPackage, shortHash } from "../../base/index.ts";
import { InvalidInputError, InvariantError, StoreUnavailableError, UnsupportedError } from "../../errors/index.ts";
import type { Row } from "../rules/stored-values.ts";
import { endsConnection, isWorthRepeating, translated } from "./postgres-errors.ts";
import { migrate } from "./postgres-migrations.ts";
import type { CheckedOptions } from "./postgres-options.ts";
import { type Query, queryOf, type Statement, within } from "./postgres-query.ts";

const OLDEST = 130_000;
const pauses = { baseMs: 5, capMs: 250 };
const IDLE_MS = 60_000;

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
  readonly schema: string;
  /** Begins the names of this schema's channels. */
  readonly channel: string;
  readonly #options: CheckedOptions;
  readonly #ready = new WeakSet<PoolClient>();
  #pool: Promise<Pool> | undefined;
  #check: Promise<void> | undefined;
  #isClosed = false;

  constructor(options: CheckedOptions) {
    this.#options = options;
    this.timeoutMs = options.timeoutMs;
    this.schema = options.schema;
    this.channel = `troupe:${shortHash(options.schema)}`;
  }

  /** Sends a statement that changes nothing, again until the time limit while the server does not answer. */
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

  async close(): Promise<void> {
    this.#isClosed = true;
    await (await this.#pool?.catch(() => undefined))?.end();
  }

  async #repeated<T>(attempt: (end: number) => Promise<T>): Promise<T> {
    const end = performance.now() + this.timeoutMs;
    for (let failures = 1; ; failures += 1) {
      try {
        return await attempt(end);
      } catch (error) {
        const pause = 1 + backoffDelay(failures, Math.random(), pauses);
        if (this.#isClosed || !isWorthRepeating(error) || performance.now() + pause >= end) throw translated(error);
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
        const query = queryOf(client);
        await checkServer(query);
        await migrate(query, { schema: this.schema });
      } finally {
        await client.end();
      }
    } catch (error) {
      this.#check = undefined;
      throw error;
    }
  }

  async #connected(): Promise<Client> {
    const { Client: PgClient } = await loaded();
    const client = new PgClient(this.#settings());
    client.on("error", () => undefined);
    await client.connect();
    return client;
  }

  async #opened(): Promise<Pool> {
    this.#pool ??= this.#open();
    return await this.#pool;
  }

  async #open(): Promise<Pool> {
    const { Pool: PgPool } = await loaded();
    const pool = new PgPool({ ...this.#settings(), max: this.#options.maxConnections, idleTimeoutMillis: IDLE_MS });
    // The statements that fail report the error.
    pool.on("error", () => undefined);
    // A server that dies may say so in the packet that ends the login; the pool listens only to connections that nobody uses.
    pool.on("connect", (client) => client.on("error", () => undefined));
    return pool;
  }

  #settings(): Record<string, unknown> {
    return {
      application_name: "troupe",
      keepAlive: true,
      connectionTimeoutMillis: this.timeoutMs,
      ...this.#options.client,
    };
  }

  #assertOpen(): void {
    if (this.#isClosed) throw new InvariantError("the stores are closed");
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

/** Warnings that this process has already emitted, for all stores. */
const warned = new Set<string>();

/**
 * Checks whether the server is suitable as the source of truth; warns if it may lose acknowledged writes.
 * Throws `UnsupportedError` for a version before 13, and `InvalidInputError` for a database that is not in UTF-8.
 */
async function checkServer(query: Query): Promise<void> {
  const [row = {}] = await query(
    {
      name: "",
      text: `SELECT current_setting('server_version_num')::int AS version, current_setting('server_encoding') AS encoding,
        current_setting('synchronous_commit') AS synchronous, current_setting('fsync') AS fsync,
        current_setting('full_page_writes') AS pages, pg_is_in_recovery() AS standby`,
    },
    [],
  );
  const { version, encoding, synchronous, fsync, pages, standby } = row;
  if (typeof version === "number" && version < OLDEST) {
    throw new UnsupportedError(
      `this Postgres has version ${Math.floor(version / 10_000)}; the stores need 13 or later`,
    );
  }
  if (encoding !== "UTF8") {
    throw new InvalidInputError(`the database has the encoding ${String(encoding)}; create one with encoding 'UTF8'`);
  }
  if (standby === true) {
    throw new StoreUnavailableError("this Postgres is a standby, which cannot write; give the url of the primary", {
      details: { code: "25006" },
    });
  }
  if (synchronous === "off") {
    warn(
      "Postgres acknowledges writes before they are on its disk (synchronous_commit is off): a crash can lose the last ones. Set synchronous_commit on where none may be lost.",
    );
  }
  if (fsync === "off" || pages === "off") {
    warn(
      `Postgres runs with ${fsync === "off" ? "fsync" : "full_page_writes"} off: a crash of its machine can lose or damage all data. Turn it on.`,
    );
  }
}

function warn(message: string): void {
  if (warned.has(message)) return;
  warned.add(message);
  process.emitWarning(message, { code: "TROUPE_POSTGRES_DURABILITY" });
}

const loaded = optionalPackage(
  async () => (await import("pg")).default,
  'Postgres stores need the package "pg": npm install pg',
);
