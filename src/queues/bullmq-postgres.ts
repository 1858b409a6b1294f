import type { Job as BullJob, PgPool, Queue, Worker } from "bullmq";
import { InvalidInputError, InvariantError, TroupeError } from "../errors/index.ts";
import { type ClientSettings, PostgresConnection, type Query, sqlState, translated } from "../postgres/index.ts";
import {
  type BullmqPackage,
  type BullmqServer,
  loadBullmq,
  QUEUES,
  type RunOfJob,
  type WorkerSettings,
} from "./bullmq-server.ts";
import type { Envelope } from "./jobs.ts";

type Pool = Awaited<ReturnType<PostgresConnection["anotherPool"]>>;

/** Where BullMQ keeps all queues of a database when it gets a pool. */
const SCHEMA = "bullmq";
/** A worker listens on one connection and sends statements on the others. */
const CONNECTIONS_OF_WORKER = 3;

/**
 * What this package notes beside the queues, each with a time from which it no longer counts. Created without a migration: the table
 * may be lost with the queues.
 */
const NOTES = `CREATE TABLE IF NOT EXISTS ${SCHEMA}.troupe_notes (
  kind text NOT NULL, queue text COLLATE "C" NOT NULL, id text COLLATE "C" NOT NULL, note text NOT NULL,
  until timestamptz NOT NULL,
  PRIMARY KEY (kind, queue, id)
)`;

/** `name`: of a queue. `worker`: a worker of a queue. `stop`: the reason to stop a run. `canary`: the queue of a canary. */
type NoteKind = "name" | "worker" | "stop" | "canary";

interface PostgresQueuesPlace {
  readonly client: ClientSettings;
  readonly maxConnections: number;
  readonly timeoutMs: number;
  readonly prefix: string;
}

/**
 * The queues in Postgres.
 *
 * Invariants
 * 1. The names of all queues, and the notes of this package, begin with the prefix, because all users of BullMQ in a database share one
 *    schema.
 * 2. Reading notes creates nothing: a process that only asks for workers needs no right to create the schema.
 */
export class BullmqPostgres implements BullmqServer {
  readonly name = "Postgres";
  readonly #place: PostgresQueuesPlace;
  readonly #connection: PostgresConnection;
  /** Reads notes of queues that may not exist yet. */
  readonly #reading: PostgresConnection;
  readonly #workerPools: Pool[] = [];
  #pool: Promise<Pool> | undefined;
  #isClosed = false;

  constructor(place: PostgresQueuesPlace) {
    this.#place = place;
    const user = {
      client: place.client,
      timeoutMs: place.timeoutMs,
      name: QUEUES,
      needing: "BullMQ queues need",
    };
    const check = (query: Query): Promise<void> => this.#migrate(query);
    this.#connection = new PostgresConnection({ ...user, maxConnections: place.maxConnections, check });
    this.#reading = new PostgresConnection({ ...user, maxConnections: 1, check: async () => undefined });
  }

  async package(): Promise<BullmqPackage> {
    return await loadBullmq("pg");
  }

  async run<T>(command: () => Promise<T>): Promise<T> {
    return await this.#connection.repeat(command);
  }

  async queue(name: string): Promise<Queue> {
    const { createPostgresBackend, withBackend } = await this.package();
    const { Queue } = withBackend(createPostgresBackend);
    this.#pool ??= this.#connection.anotherPool(this.#settings(this.#place.maxConnections));
    const queue = new Queue(this.#nameOf(name), { connection: asBullmqPool(await this.#pool) });
    // The caller of a command gets the error; the event is not needed.
    queue.on("error", () => undefined);
    await queue.waitUntilReady();
    return queue as unknown as Queue;
  }

  /** A worker of bullmq that was not ready once never is; this one is ready. Rejects if Postgres does not answer within `timeoutMs`. */
  async worker(
    name: string,
    process: (job: BullJob<Envelope>, token?: string) => Promise<void>,
    { onError, ...settings }: WorkerSettings,
  ): Promise<Worker<Envelope, void>> {
    const { createPostgresBackend, withBackend } = await this.package();
    const { Worker } = withBackend(createPostgresBackend);
    const pool = await this.#connection.anotherPool(this.#settings(CONNECTIONS_OF_WORKER));
    this.#workerPools.push(pool);
    // A worker that could not end in time finds its pool closed.
    const tell = (error: unknown): void => {
      if (!this.#isClosed) onError(error);
    };
    let isLate = false;
    const started = this.run(async () => {
      const worker = new Worker<Envelope, void>(this.#nameOf(name), process, {
        ...settings,
        connection: asBullmqPool(pool),
        autorun: false,
      });
      worker.on("error", tell);
      try {
        await worker.waitUntilReady();
      } catch (error) {
        worker.close(true).catch(() => undefined);
        throw error;
      }
      if (this.#isClosed || isLate) {
        await worker.close(true);
        throw new InvariantError(`${QUEUES} are closed`);
      }
      worker.run().catch(tell);
      return worker as unknown as Worker<Envelope, void>;
    });
    started.catch(() => (isLate = true));
    return await started;
  }

  async giveBack(job: BullJob<Envelope>, token: string): Promise<void> {
    // On Postgres, this puts the job at the end of its queue.
    await job.moveToWait(token);
    await job.changePriority({ priority: job.priority, lifo: true });
  }

  /** As a text, because `jsonb` refuses NUL, and ids may have it. */
  encoded(data: Envelope): unknown {
    return JSON.stringify(data);
  }

  decoded(data: unknown): unknown {
    if (typeof data !== "string") return data;
    try {
      return JSON.parse(data) as unknown;
    } catch {
      return data;
    }
  }

  translated(error: unknown): TroupeError {
    const known = translated(error, QUEUES);
    if (known instanceof TroupeError) return known;
    return new InvariantError(`the queues failed: ${known instanceof Error ? known.name : typeof known}`);
  }

  isOfConnection(error: unknown): boolean {
    return sqlState(error) !== undefined || (error instanceof Error && "code" in error);
  }

  async register(queues: readonly string[]): Promise<void> {
    for (const queue of queues) await this.#note("name", { queue, id: "", note: "" }, "infinity");
  }

  async names(): Promise<string[]> {
    return (await this.#notes("name")).map(({ queue }) => this.#without(queue));
  }

  async enter(queue: string, worker: string, ms: number, isOver: () => boolean): Promise<void> {
    await this.run(async () => {
      // A late renewal must not restore an entry that was removed.
      if (!isOver()) await this.#note("worker", { queue, id: worker, note: "" }, ms);
    });
    await this.#connection.read(
      statement(`DELETE FROM ${SCHEMA}.troupe_notes WHERE queue = $1::text AND until < clock_timestamp()`),
      [this.#nameOf(queue)],
    );
  }

  async leave(queue: string, worker: string): Promise<void> {
    await this.#forget("worker", queue, worker);
  }

  async workers(queue: string): Promise<number> {
    return (await this.#notes("worker", queue)).length;
  }

  async askToStop(queue: string, run: RunOfJob, reason: string, seconds: number): Promise<void> {
    const note = reason.toWellFormed().replaceAll("\0", "\uFFFD");
    await this.#note("stop", { queue, id: stopOf(run), note }, seconds * 1_000);
  }

  async stopsAsked(queue: string, runs: readonly RunOfJob[]): Promise<Map<string, string>> {
    const rows = await this.#connection.read(
      statement(
        `SELECT id, note FROM ${SCHEMA}.troupe_notes
         WHERE kind = 'stop' AND queue = $1::text AND id = ANY($2::text[]) AND until > clock_timestamp()`,
      ),
      [this.#nameOf(queue), runs.map(stopOf)],
    );
    const reasons = new Map(rows.map((row) => [row["id"], String(row["note"])]));
    return new Map(
      runs.flatMap((run) => {
        const reason = reasons.get(stopOf(run));
        return reason === undefined ? [] : [[run.jobId, reason] as const];
      }),
    );
  }

  async noteCanary(name: string, at: number): Promise<void> {
    await this.#note("canary", { queue: name, id: "", note: String(at) }, "infinity");
  }

  async forgetCanary(name: string): Promise<void> {
    await this.#forget("canary", name, "");
  }

  async oldCanaries(until: number): Promise<string[]> {
    const old = (await this.#notes("canary")).filter(({ note }) => Number(note) < until);
    return old.slice(0, 10).map(({ queue }) => this.#without(queue));
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const own = await this.#pool?.catch(() => undefined);
    const pools = own ? [own, ...this.#workerPools] : this.#workerPools;
    await Promise.allSettled(pools.map((pool) => pool.end()));
    await Promise.all([this.#connection.close(), this.#reading.close()]);
  }

  async #migrate(query: Query): Promise<void> {
    const { runMigrations } = await this.package();
    try {
      // The query has the shape of a client's, as far as migrations use it.
      await runMigrations({
        query: async (text, values = []) => ({ rows: (await query({ name: "", text }, values)) as never[] }),
      });
      // Beside other processes that create it at the same moment.
      await query(statement("SELECT pg_advisory_lock(hashtext('troupe_notes'))"), []);
      await query(statement(NOTES), []);
      await query(statement("SELECT pg_advisory_unlock(hashtext('troupe_notes'))"), []);
    } catch (error) {
      if (sqlState(error) !== "42501") throw error;
      throw new InvalidInputError(
        `the user may not create the schema ${SCHEMA}, in which BullMQ keeps queues, or its tables; run CREATE SCHEMA ${SCHEMA} AUTHORIZATION the_user, or grant CREATE on the database`,
        { details: { schema: SCHEMA, code: "42501" }, cause: error },
      );
    }
  }

  /** BullMQ's statements name no schema. */
  #settings(max: number): ClientSettings {
    const { client, timeoutMs } = this.#place;
    const added = `-c search_path=${SCHEMA} -c statement_timeout=${timeoutMs}`;
    const { connectionString, options } = client;
    if (typeof connectionString !== "string") {
      return { max, options: typeof options === "string" ? `${options} ${added}` : added };
    }
    // What the URL says has precedence over other settings.
    const url = new URL(connectionString);
    const given = url.searchParams.get("options");
    url.searchParams.set("options", given === null ? added : `${given} ${added}`);
    return { max, connectionString: url.href };
  }

  #nameOf(queue: string): string {
    return `${this.#place.prefix}${queue}`;
  }

  #without(name: string): string {
    return name.slice(this.#place.prefix.length);
  }

  async #note(
    kind: NoteKind,
    { queue, id, note }: { readonly queue: string; readonly id: string; readonly note: string },
    ms: number | "infinity",
  ): Promise<void> {
    const until = ms === "infinity" ? "'infinity'" : "clock_timestamp() + $5::float8 * interval '1 millisecond'";
    await this.#connection.read(
      statement(
        `INSERT INTO ${SCHEMA}.troupe_notes (kind, queue, id, note, until)
         VALUES ($1::text, $2::text, $3::text, $4::text, ${until})
         ON CONFLICT (kind, queue, id) DO UPDATE SET note = excluded.note, until = excluded.until`,
      ),
      [kind, this.#nameOf(queue), id, note, ...(ms === "infinity" ? [] : [ms])],
    );
  }

  async #forget(kind: NoteKind, queue: string, id: string): Promise<void> {
    await this.#connection.read(
      statement(`DELETE FROM ${SCHEMA}.troupe_notes WHERE kind = $1::text AND queue = $2::text AND id = $3::text`),
      [kind, this.#nameOf(queue), id],
    );
  }

  /** The notes of one kind that count, of one queue or of all with the prefix. None if there are no queues yet. */
  async #notes(kind: NoteKind, queue?: string): Promise<{ readonly queue: string; readonly note: string }[]> {
    const { prefix } = this.#place;
    const which = queue === undefined ? "starts_with(queue, $2::text)" : "queue = $2::text";
    const text = `SELECT queue, note FROM ${SCHEMA}.troupe_notes
      WHERE kind = $1::text AND ${which} AND until > clock_timestamp() ORDER BY queue, id`;
    const values = [kind, queue === undefined ? prefix : this.#nameOf(queue)];
    const rows = await this.#reading.read(statement(text), values).catch((error: unknown) => {
      if (error instanceof TroupeError && isMissing(error.details["code"])) return [];
      throw error;
    });
    return rows.map((row) => ({ queue: String(row["queue"]), note: String(row["note"]) }));
  }
}

/** BullMQ takes pools of `pg`, but declares them with narrower listeners. */
function asBullmqPool(pool: Pool): PgPool {
  return pool as unknown as PgPool;
}

/** Whether a state means that a table or its schema does not exist. */
function isMissing(state: unknown): boolean {
  return state === "42P01" || state === "3F000";
}

function stopOf({ jobId, addedAt }: RunOfJob): string {
  return `${addedAt}:${jobId}`;
}

function statement(text: string): { readonly name: string; readonly text: string } {
  return { name: "", text };
}
