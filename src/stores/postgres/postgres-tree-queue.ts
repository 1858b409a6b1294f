import { setTimeout as delay } from "node:timers/promises";
import { backoffDelay } from "../../base/index.ts";
import { StoreUnavailableError } from "../../errors/index.ts";
import { GroupQueue, type QueuedWork, runTogether, settle, type WorkOutcome } from "../rules/grouped-work.ts";
import { integerOf } from "../rules/stored-values.ts";
import type { StoresConnection } from "./stores-connection.ts";
import {
  isConflict,
  isTimeout,
  isUnsure,
  isWorthRepeating,
  prepared,
  type Query,
  translated,
  within,
} from "../../postgres/index.ts";
import { loadRows } from "./postgres-loads.ts";
import { noticeOf } from "./postgres-notices.ts";
import { type HeadRow, type Held, Missing, TreeCache, type Wanted, WriteSession } from "./postgres-session.ts";
import { columnsOf, type TreeName } from "./postgres-text.ts";
import { stepsOf } from "./postgres-writes.ts";

type Work = QueuedWork<WriteSession, undefined>;
type Outcome = WorkOutcome<WriteSession, undefined>;

export interface QueueContext {
  readonly connection: StoresConnection;
  /** Distinguishes this process's writes from others'. */
  readonly writer: string;
  /** Numbers the writes of this process. */
  readonly nextWrite: () => number;
  /** Called when the stored tree is older than this process has seen it. */
  readonly onRolledBack: (known: { readonly tree: TreeName; readonly cache: TreeCache }, found: number) => void;
}

/** After this many conflicts with other processes a group locks the tree before it reads. */
const FAIR_ATTEMPTS = 3;
/** Most values that are cached of one tree. */
const MOST_CACHED = 20_000;
const pauses = { baseMs: 2, capMs: 40 };

/**
 * The writes of one tree: works wait in a queue and run in groups, with optimistic concurrency control.
 * Owns: their order in this process, the cache, retries. Does not own: what the works do.
 *
 * Invariants
 * 1. A group is answered only after its changes were written in one transaction, under the version of the tree that it has read.
 * 2. A group that conflicts with another process runs again with the new rows; after some attempts it locks the tree first.
 * 3. A write whose answer was lost is not repeated unless the tree shows that it was not applied.
 */
class TreeQueue {
  readonly tree: TreeName;
  readonly cache = new TreeCache();
  readonly #context: QueueContext;
  readonly #works = new GroupQueue<WriteSession, undefined>(
    (group) => this.#runGroup(group),
    (error) => {
      this.cache.forget();
      return translated(error);
    },
  );

  constructor(tree: TreeName, context: QueueContext) {
    this.tree = tree;
    this.#context = context;
  }

  get isIdle(): boolean {
    return this.#works.isIdle;
  }

  /** Resolves when the queue is empty. */
  idle(): Promise<void> {
    return this.#works.idle();
  }

  add(work: Work): void {
    this.#works.add(work);
  }

  /** Settles the first works of the group, at least one; returns how many. */
  async #runGroup(group: readonly Work[]): Promise<number> {
    const { connection } = this.#context;
    const end = performance.now() + connection.timeoutMs;
    /** Writes whose answer was lost, by number. */
    const unsure = new Map<number, readonly Outcome[]>();
    /** Why the last attempt failed; `undefined` after a conflict. */
    let failure: unknown;
    for (let failures = 0; ; failures += 1) {
      if (failures > 1) await delay(1 + backoffDelay(failures, Math.random(), pauses));
      const left = end - performance.now();
      if (left <= 0) throw unsure.size === 0 && failure !== undefined ? failure : this.#gaveUp(unsure.size > 0);
      const attempt = new Attempt(this.tree, this.cache, this.#context, unsure);
      try {
        const outcomes =
          failures < FAIR_ATTEMPTS
            ? await attempt.run(group, (work) => connection.attempt(work, left), left)
            : await connection.attempt((query) => attempt.runLocked(group, query, left), left);
        failure = undefined;
        if (outcomes === "conflict") continue;
        for (const outcome of outcomes) settle(outcome, undefined);
        if (this.cache.rows.size > MOST_CACHED) this.cache.forget();
        return outcomes.length;
      } catch (error) {
        this.cache.forget();
        // The last attempt is cut short; an earlier one says why there is no answer.
        if (!isTimeout(error) || failure === undefined) failure = error;
        if (isUnsure(error) && attempt.sent) unsure.set(attempt.sent.writeNo, attempt.sent.outcomes);
        else if (!isWorthRepeating(error) && !isConflict(error)) throw failure;
      }
    }
  }

  #gaveUp(isUnsureWrite: boolean): StoreUnavailableError {
    const { timeoutMs } = this.#context.connection;
    const why = isUnsureWrite ? "it is unknown whether the last write was applied" : "nothing was written";
    return new StoreUnavailableError(
      `Postgres could not write the tree ${this.tree.tag} within ${timeoutMs} ms; ${why}`,
      { details: { code: isUnsureWrite ? "ETIMEDOUT" : "CONTENDED" } },
    );
  }
}

/** Runs statements on one connection. */
type Connect = <T>(work: (query: Query) => Promise<T>) => Promise<T>;

/** One attempt to run a group and to write its changes. */
class Attempt {
  readonly #tree: TreeName;
  readonly #cache: TreeCache;
  readonly #context: QueueContext;
  readonly #unsure: ReadonlyMap<number, readonly Outcome[]>;
  readonly #answers = new Map<string, unknown>();
  /** Puts the changes of a write within a transaction into the cache, once the transaction has committed. */
  #keepCommitted: (() => void) | undefined;
  /** The write that was sent last. */
  sent: { readonly writeNo: number; readonly outcomes: readonly Outcome[] } | undefined;

  constructor(
    tree: TreeName,
    cache: TreeCache,
    context: QueueContext,
    unsure: ReadonlyMap<number, readonly Outcome[]>,
  ) {
    this.#tree = tree;
    this.#cache = cache;
    this.#context = context;
    this.#unsure = unsure;
  }

  async run(
    group: readonly Work[],
    connect: Connect,
    left: number,
    isLocked = false,
  ): Promise<readonly Outcome[] | "conflict"> {
    const end = performance.now() + left;
    for (;;) {
      if (this.#unsure.size > 0) {
        if (this.#cache.version === undefined) await this.#load(connect, {});
        const applied = this.#unsure.get(this.#cache.ownWrite);
        if (applied) return applied;
      }
      const session = new WriteSession(this.#tree, this.#cache, this.#answers);
      const { outcomes, missing } = runTogether(group, session, (thrown) => thrown instanceof Missing);
      if (missing.length > 0) await this.#loadAll(connect, missing);
      else if (this.#cache.version === undefined) await this.#load(connect, {});
      else return await this.#write(session, outcomes, connect, isLocked);
      if (performance.now() > end)
        throw new StoreUnavailableError("Postgres did not answer in time; nothing was written");
    }
  }

  /** The same within a transaction that keeps other processes from the tree. */
  async runLocked(group: readonly Work[], query: Query, left: number): Promise<readonly Outcome[] | "conflict"> {
    this.#cache.forget();
    const outcomes = await within(query, "BEGIN", async () => {
      const { schema } = this.#context.connection;
      const { id } = this.#cache;
      await query({ name: "", text: `SELECT 1 FROM "${schema}".trees WHERE id = $1 FOR UPDATE` }, [id ?? null]);
      return await this.run(group, (work) => work(query), left, true);
    });
    this.#keepCommitted?.();
    return outcomes;
  }

  async #write(
    session: WriteSession,
    outcomes: readonly Outcome[],
    connect: Connect,
    isLocked: boolean,
  ): Promise<readonly Outcome[] | "conflict"> {
    const { connection, writer } = this.#context;
    if (!session.isChanged) return (await this.#isCurrent(connect)) ? outcomes : "conflict";
    const writeNo = this.#context.nextWrite();
    const text = noticeOf(session);
    const notice = text === undefined ? undefined : { channel: `${connection.channel}:w`, text: `${writer} ${text}` };
    const steps = stepsOf(session, this.#cache, { schema: connection.schema, writer, writeNo, notice });
    this.sent = { writeNo, outcomes };
    const written = await connect(async (query) => {
      const all = async () => {
        let row;
        for (const { statement, values } of steps) {
          [row] = await query(statement, values);
          if (!row) return undefined;
        }
        return row;
      };
      return steps.length === 1 || isLocked ? await all() : await within(query, "BEGIN", all);
    });
    if (!written) {
      this.#cache.forget();
      return "conflict";
    }
    const where = `the tree ${this.#tree.tag}`;
    const [id, version] = [integerOf(written, "id", where), integerOf(written, "version", where)];
    const keep = (): void => this.#keep(session, { writeNo, id, version });
    // A version that is not committed yet may never be: it would later look like one that the server has lost.
    if (isLocked) this.#keepCommitted = keep;
    else keep();
    return outcomes;
  }

  /** Checks what was read when nothing is to be written. */
  async #isCurrent(connect: Connect): Promise<boolean> {
    const { version, schema } = { version: this.#cache.version, schema: this.#context.connection.schema };
    const statement = prepared(`SELECT version FROM "${schema}".trees WHERE tenant = $1::text AND root = $2::text`);
    const [row] = await connect((query) => query(statement, columnsOf(this.#tree)));
    if ((row ? integerOf(row, "version", `the tree ${this.#tree.tag}`) : 0) === version) return true;
    this.#cache.forget();
    return false;
  }

  /** Puts the changes of a session into the cache, under the new version. */
  #keep(
    session: WriteSession,
    { writeNo, id, version }: { readonly writeNo: number; readonly id: number; readonly version: number },
  ): void {
    const cache = this.#cache;
    if (session.isPurged) {
      cache.forgetTree();
      return;
    }
    if (session.isRemoved) {
      cache.forget();
      cache.seen.clear();
    } else {
      for (const key of session.blind.keys()) cache.rows.delete(key);
      for (const [key, value] of session.values) cache.rows.set(key, value);
      // A tree that was just created has no other rows.
      if (cache.version === 0) cache.isWhole = true;
      cache.version = version;
    }
    Object.assign(cache, {
      id,
      lastCursor: session.lastCursor,
      agents: session.agents,
      imports: cache.imports + (session.isRemoved ? 1 : 0),
      writer: this.#context.writer,
      writeNo,
      ownWrite: writeNo,
    });
    this.#see(session.values);
  }

  async #loadAll(connect: Connect, missing: readonly Missing[]): Promise<void> {
    const wanted = missing.flatMap((one) => one.wanted ?? []);
    const others = new Map(missing.flatMap(({ other }) => (other ? [[other.key, other] as const] : [])));
    if (wanted.length > 0) await this.#load(connect, unionOf(wanted));
    const { version } = this.#cache;
    for (const { key, load, isBeside } of others.values()) {
      const value = await connect(load);
      if (isBeside) this.#answers.set(key, value);
      else if (version !== undefined) this.#cache.rows.set(key, value);
    }
  }

  async #load(connect: Connect, wanted: Wanted): Promise<void> {
    const { connection, writer } = this.#context;
    const cache = this.#cache;
    const place = { schema: connection.schema, writer, tree: this.#tree };
    const had = cache.newest;
    await connect((query) => loadRows(query, place, cache, wanted));
    if (this.#tree.beside !== undefined) return;
    const version = cache.version ?? 0;
    if (version < had || this.#hasOlderHead()) {
      this.#context.onRolledBack({ tree: this.#tree, cache }, version);
    }
    this.#see(cache.rows);
  }

  /** Whether a head went back: another process has written to the tree since it was rolled back. */
  #hasOlderHead(): boolean {
    for (const [agentId, seq] of this.#cache.seen) {
      const key = `head|${agentId}`;
      if (!this.#cache.rows.has(key)) continue;
      const row = this.#cache.rows.get(key) as Held<HeadRow> | undefined;
      if (row && seqOf(row) < seq) return true;
    }
    return false;
  }

  #see(rows: ReadonlyMap<string, unknown>): void {
    const cache = this.#cache;
    cache.newest = Math.max(cache.newest, cache.version ?? 0);
    for (const [key, row] of rows) {
      if (!key.startsWith("head|") || row === undefined) continue;
      cache.seen.set(key.slice("head|".length), seqOf(row as Held<HeadRow>));
    }
  }
}

/** -1 for a corrupt head. */
function seqOf(row: Held<HeadRow>): number {
  try {
    return row.value.head.seq;
  } catch {
    return -1;
  }
}

function unionOf(wanted: readonly Wanted[]): Wanted {
  const all = (name: "agents" | "parents" | "accounts"): string[] => [
    ...new Set(wanted.flatMap((one) => one[name] ?? [])),
  ];
  return {
    agents: all("agents"),
    parents: all("parents"),
    accounts: all("accounts"),
    allAccounts: wanted.some(({ allAccounts }) => allAccounts),
  };
}

/** Approximate number of values of all trees cached in this process; beyond it, least recently used trees are dropped. */
const CACHED_VALUES = 100_000;
/** Number of works between two checks of the cache size. */
const WORKS_BETWEEN_LOOKS = 256;

/** The queues of a process, by tree. Owns: which trees are cached. Does not own: the writes. */
export class TreeQueues {
  readonly #context: QueueContext;
  readonly #queues = new Map<string, TreeQueue>();
  #works = 0;

  constructor(context: QueueContext) {
    this.#context = context;
  }

  /** The queue of a tree that gets another piece of work. */
  of(tree: TreeName): TreeQueue {
    this.#works += 1;
    if (this.#works % WORKS_BETWEEN_LOOKS === 0) this.#forgetSome();
    const queue = this.#queues.get(tree.tag) ?? new TreeQueue(tree, this.#context);
    // Keeps the map ordered by last use.
    this.#queues.delete(tree.tag);
    this.#queues.set(tree.tag, queue);
    return queue;
  }

  known(tag: string): TreeQueue | undefined {
    return this.#queues.get(tag);
  }

  /** Drops what is known of a tree that was deleted. */
  drop(tag: string): void {
    const queue = this.#queues.get(tag);
    queue?.cache.forgetTree();
    if (queue?.isIdle) this.#queues.delete(tag);
  }

  all(): readonly TreeQueue[] {
    return [...this.#queues.values()];
  }

  async idle(): Promise<void> {
    await Promise.all(this.all().map((queue) => queue.idle()));
  }

  #forgetSome(): void {
    let size = 0;
    for (const queue of this.all()) size += queue.cache.rows.size;
    for (const [tag, queue] of this.#queues) {
      if (size <= CACHED_VALUES) return;
      if (!queue.isIdle) continue;
      size -= queue.cache.rows.size;
      this.#queues.delete(tag);
    }
  }
}
