import { setTimeout as delay } from "node:timers/promises";
import { backoffDelay } from "../../base/index.ts";
import { StoreUnavailableError } from "../../errors/index.ts";
import { GroupQueue, type QueuedWork, runTogether, settle } from "../rules/grouped-work.ts";
import { type KnownTrees, TreeCache } from "./redis-cache.ts";
import { evaluate, type RedisConnection, textsOf } from "./redis-connection.ts";
import { noticeOf } from "./redis-foreign-writes.ts";
import type { RedisIndexes, WrittenAt } from "./redis-indexes.ts";
import { fields, type TreeKeys } from "./redis-keys.ts";
import { rowsScript } from "./redis-read-scripts.ts";
import { absentRow, type SeenRow, seenRow } from "./redis-rows.ts";
import { applyScript, unlockScript } from "./redis-scripts.ts";
import { Answers, type IndexWrite, Missing, TreeSession } from "./redis-session.ts";
import { type Applied, appliedOf, type Done, encoded, keep, learn, leavingForGood } from "./redis-transaction.ts";

export interface QueueContext {
  readonly connection: RedisConnection;
  readonly indexes: RedisIndexes;
  /** Distinguishes this process's transactions from others'. */
  readonly owner: string;
  readonly channel: string;
  /** Returns a transaction id that is unique in this process; its transactions share the receipts of trees. */
  readonly nextId: () => string;
  /** Called after this process has changed the tree. */
  readonly onChanged: (session: TreeSession) => void;
}

/** A tree with at most this many rows is read completely. */
const FEW_ROWS = 256;
/** After this many conflicts with other processes a group locks the tree. */
const FAIR_ATTEMPTS = 4;
const LOCK_MS = 2000;
const pauses = { baseMs: 2, capMs: 40 };

/**
 * The transactions of one tree: works wait in a queue and run in groups, with optimistic concurrency control.
 * Owns: their order in this process, the cache, retries. Does not own: what the works do.
 *
 * Invariants
 * 1. A group is answered only after all its reads were validated and all its changes were written, in one step.
 * 2. A group that conflicts with another process runs again with the new rows; after some attempts it locks the tree.
 * 3. After a failure that leaves the outcome of the step unknown, the cache is cleared.
 */
class TreeQueue {
  readonly tree: TreeKeys;
  readonly cache = new TreeCache();
  readonly #context: QueueContext;
  readonly #works = new GroupQueue<TreeSession, Done>(
    (group) => this.#runGroup(group),
    (error) => {
      this.cache.clear();
      return error;
    },
  );

  constructor(tree: TreeKeys, context: QueueContext) {
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

  add(work: QueuedWork<TreeSession, Done>): void {
    this.#works.add(work);
  }

  /** Settles the first works of the group, at least one; returns how many. */
  async #runGroup(group: readonly QueuedWork<TreeSession, Done>[]): Promise<number> {
    const { connection } = this.#context;
    const end = performance.now() + connection.timeoutMs;
    const answers = new Answers();
    let lockedUntil = 0;
    try {
      for (let failures = 0; ; ) {
        const session = new TreeSession(this.tree, this.cache, answers);
        const { outcomes, missing } = runTogether(group, session, (thrown) => thrown instanceof Missing);
        if (missing.length > 0) await this.#load(missing, answers);
        else {
          const applied = await this.#apply(session);
          if (applied.type === "done") {
            for (const outcome of outcomes) settle(outcome, applied);
            return outcomes.length;
          }
          failures += 1;
          if (applied.type === "changed") learn(session, this.cache, applied.facts);
          if (failures >= FAIR_ATTEMPTS && performance.now() >= lockedUntil) lockedUntil = await this.#lock();
          if (failures > 1) await delay(1 + backoffDelay(failures, Math.random(), pauses));
        }
        if (performance.now() > end) throw this.#gaveUp(failures);
      }
    } finally {
      if (lockedUntil > 0)
        connection.script(unlockScript, [this.tree.lock], [this.#context.owner]).catch(() => undefined);
    }
  }

  /** On a single server, the transaction writes the indexes itself. */
  async #applyTogether(session: TreeSession): Promise<Applied> {
    const { connection, owner, channel } = this.#context;
    const message = noticeOf(session);
    const envelope = { id: this.#context.nextId(), owner, indexedAt: "", channel, message };
    const transaction = encoded(session, envelope, session.indexWrites);
    if (!transaction) return nothingToDo;
    const { keys, args } = transaction;
    const answer = await connection.run((client, repeat) => evaluate(client, applyScript, keys, args(repeat)));
    const applied = appliedOf(answer, keys, session);
    if (applied.type === "done") {
      keep(session, this.cache, applied.version);
      if (message) this.#context.onChanged(session);
    }
    return applied;
  }

  async #apply(session: TreeSession): Promise<Applied> {
    const isOneServer = await this.#context.connection.mayMixKeys();
    return isOneServer ? await this.#applyTogether(session) : await this.#applyApart(session);
  }

  /** In a cluster, the indexes are written separately. */
  async #applyApart(session: TreeSession): Promise<Applied> {
    const { connection, indexes, owner, channel } = this.#context;
    const written = await indexes.write(session.indexWrites);
    const message = noticeOf(session);
    const transaction = encoded(
      session,
      { id: this.#context.nextId(), owner, indexedAt: written.at, channel, message },
      [],
    );
    if (!transaction) return nothingToDo;
    const { keys, args } = transaction;
    const answer = await connection.run(async (client, repeat) => {
      // Redis may have lost the index entries in between, and they must not be missing.
      if (repeat > 0) await indexes.write(session.indexWrites);
      return await evaluate(client, applyScript, keys, args(repeat));
    });
    const applied = appliedOf(answer, keys, session);
    if (applied.type === "done") {
      keep(session, this.cache, applied.version);
      this.#correct(session.indexWrites, written);
      if (message) this.#context.onChanged(session);
    }
    return applied;
  }

  /** If this fails, the entry stays; readers skip it. */
  #correct(writes: readonly IndexWrite[], { stamps }: WrittenAt): void {
    const leaving = writes.filter(({ kind }) => kind === "leaving");
    for (const write of leavingForGood(writes)) {
      const { keys, member } = write;
      const stamp = stamps[leaving.indexOf(write)] ?? "";
      this.#context.indexes.correct(keys, member, stamp).catch(() => undefined);
    }
  }

  async #load(missing: readonly Missing[], answers: Answers): Promise<void> {
    const rows = new Set<string>();
    const others = new Map<string, Missing>();
    for (const one of missing) {
      if (one.rows.length === 0) others.set(one.key, one);
      for (const name of one.rows) rows.add(name);
    }
    const loads = [...others.values()].map(async ({ key, load }) => answers.set(key, await load()));
    if (rows.size > 0) loads.push(this.loadRows([...rows]));
    await Promise.all(loads);
  }

  /** Loads rows into the cache; the complete tree if it has few rows. */
  async loadRows(names: readonly string[]): Promise<void> {
    const { rows } = this.tree;
    // Every post also reads this row.
    const wanted = [...new Set([...names, fields.posts])];
    const answer = await this.#context.connection.script(rowsScript, [rows], [FEW_ROWS, ...wanted]);
    if (!Array.isArray(answer)) return;
    const [kind, ...values]: unknown[] = answer;
    if (kind === "all") {
      const texts = textsOf(values);
      const all = new Map<string, string>();
      for (let at = 0; at < texts.length; at += 2) all.set(texts[at] ?? "", texts[at + 1] ?? "");
      this.cache.noteAll(all);
      return;
    }
    for (const [index, name] of wanted.entries()) {
      const value = values[index];
      this.cache.note(name, typeof value === "string" ? value : undefined);
    }
  }

  /** The time until which this process has the lock; 0 if another process has it. */
  async #lock(): Promise<number> {
    const { connection, owner } = this.#context;
    const asked = performance.now();
    const answer = await connection.run((client) => client.set(this.tree.lock, owner, "PX", LOCK_MS, "NX"));
    return answer === "OK" ? asked + LOCK_MS : 0;
  }

  #gaveUp(failures: number): StoreUnavailableError {
    const { timeoutMs } = this.#context.connection;
    const why = failures === 0 ? "took too long to read" : "was changed by other processes in every attempt";
    return new StoreUnavailableError(`the tree ${this.tree.tag} ${why}, for ${timeoutMs} ms; nothing was written`, {
      details: { code: failures === 0 ? "ETIMEDOUT" : "CONTENDED" },
    });
  }
}

const nothingToDo: Applied = { type: "done", version: "", cursor: 0, holders: new Map() };
/** Approximate number of rows of all trees cached in this process; beyond it, least recently used trees are dropped. */
const CACHED_ROWS = 50_000;
/** Number of works between two checks of the cache size. */
const WORKS_BETWEEN_LOOKS = 256;

/** The queues of a process, by tree. Owns: which trees are cached. Does not own: the transactions. */
export class TreeQueues implements KnownTrees {
  readonly #queues = new Map<string, TreeQueue>();
  readonly #onNew: (queue: TreeQueue) => void;
  #works = 0;

  constructor(onNew: (queue: TreeQueue) => void) {
    this.#onNew = onNew;
  }

  /** The queue of a tree that gets another piece of work. */
  of(tree: TreeKeys, context: QueueContext): TreeQueue {
    this.#works += 1;
    if (this.#works % WORKS_BETWEEN_LOOKS === 0) this.#forgetSome();
    const known = this.#queues.get(tree.tag);
    const queue = known ?? new TreeQueue(tree, context);
    if (!known) this.#onNew(queue);
    // Keeps the map ordered by last use.
    this.#queues.delete(tree.tag);
    this.#queues.set(tree.tag, queue);
    return queue;
  }

  /** If the row is older than the cached one, the next transaction needs another attempt. */
  note({ tag }: TreeKeys, field: string, stored: string | undefined): SeenRow {
    const queue = this.#queues.get(tag);
    if (queue) return queue.cache.note(field, stored);
    return stored === undefined ? absentRow : seenRow(stored);
  }

  lacks({ tag }: TreeKeys, field: string): boolean {
    const queue = this.#queues.get(tag);
    return queue !== undefined && queue.cache.row(field) === undefined;
  }

  /** Called when another process has written to the tree. A process that posts to an agent usually also writes its record. */
  forgetRecords(tag: string, posted: readonly string[], records: readonly string[]): void {
    const queue = this.#queues.get(tag);
    if (!queue) return;
    for (const agentId of records) queue.cache.forgetRow(fields.record(agentId));
    for (const agentId of posted) if (!records.includes(agentId)) queue.cache.forgetRow(fields.record(agentId));
  }

  /** A queue with work is kept: its next transaction finds the tree gone. */
  drop({ tag }: TreeKeys): void {
    if (this.#queues.get(tag)?.isIdle === true) this.#queues.delete(tag);
  }

  all(): readonly TreeQueue[] {
    return [...this.#queues.values()];
  }

  async idle(): Promise<void> {
    await Promise.all(this.all().map((queue) => queue.idle()));
  }

  #forgetSome(): void {
    let size = 0;
    for (const queue of this.all()) size += queue.cache.size;
    for (const [tag, queue] of this.#queues) {
      if (size <= CACHED_ROWS) return;
      if (!queue.isIdle) continue;
      size -= queue.cache.size;
      this.#queues.delete(tag);
    }
  }
}
