import { randomUUID } from "node:crypto";
import { deepFreeze } from "../../base/index.ts";
import { InvariantError } from "../../errors/index.ts";
import type { AgentKey } from "../../state/index.ts";
import type { ForeignWrites } from "../rules/foreign-writes.ts";
import { holderOf } from "../rules/leases.ts";
import type { OpenTurnOutcome, ProcessIdentity, SteerOutcome, StoredLook } from "../rules/outcomes.ts";
import { steer } from "../rules/steer.ts";
import { type ChannelListener, PublishedLive } from "../rules/published-live.ts";
import { PublishedWrites } from "../rules/published-writes.ts";
import { lookAtTurn, openTurn } from "../rules/turns.ts";
import type { RolledBackTree, SteerCommand, Stores, TreeActivity, TreeHead, TurnCommand } from "../rules/ports.ts";
import type { Database, StoreTables } from "../rules/tables.ts";
import { AboutTree, ReadSession } from "./redis-agents.ts";
import { type CheckedOptions, RedisConnection } from "./redis-connection.ts";
import { RedisExpired } from "./redis-expired.ts";
import { RedisExpiry } from "./redis-expiry.ts";
import { RedisIndexes } from "./redis-indexes.ts";
import { RedisKeys, type TreeKeys } from "./redis-keys.ts";
import { RedisLists } from "./redis-lists.ts";
import { redisLiveTransport } from "./redis-live.ts";
import { RedisReader } from "./redis-reader.ts";
import { RedisReads } from "./redis-reads.ts";
import { RedisRollbacks } from "./redis-rollbacks.ts";
import { rowKinds } from "./redis-rows.ts";
import { Missing, type TreeSession } from "./redis-session.ts";
import { RedisSubscriber } from "./redis-subscriber.ts";
import type { Done } from "./redis-transaction.ts";
import { type QueueContext, TreeQueues } from "./redis-tree-queue.ts";
import { postedTo, RedisUnattended } from "./redis-unattended.ts";
import { readTreeActivity, readTreeHead } from "./redis-whole-tree.ts";

/** Later than any time. */
const NEVER = Number.MAX_SAFE_INTEGER;
/** How long the registration of a process is assumed without another check, in milliseconds. */
const PROCESS_KNOWN_MS = 1_000;
const PROCESSES_KEPT = 1_000;

/**
 * Trees in Redis that are shared by several processes.
 * Owns: the assignment of work to the queues of trees, and the size of the caches. Does not own: rows, transactions.
 *
 * Invariants
 * 1. Work that writes belongs to one tree. Works on one tree in this process take effect in the order of the calls.
 * 2. Work that only reads always reads from Redis.
 */
export class RedisDatabase implements Database {
  readonly #connection: RedisConnection;
  readonly #keys: RedisKeys;
  readonly #reader: RedisReader;
  readonly #tables: RedisReads;
  readonly #context: QueueContext;
  readonly #foreignWrites: PublishedWrites;
  readonly #rollbacks: RedisRollbacks;
  readonly #subscriber: RedisSubscriber;
  readonly live: PublishedLive;
  /** The trees are in different slots of a cluster. */
  readonly spansTrees = false;
  readonly #expired: RedisExpired;
  readonly #expiry: RedisExpiry | undefined;
  readonly #unattended: RedisUnattended;
  readonly #queues = new TreeQueues((queue) => this.#rollbacks.watch(queue));
  readonly #reading = new Set<Promise<unknown>>();
  /** Processes that were found to be registered, and how long that is assumed. */
  readonly #processes = new Map<string, { readonly process: ProcessIdentity; readonly until: number }>();
  #isClosed = false;

  constructor(options: CheckedOptions) {
    const owner = randomUUID();
    this.#connection = new RedisConnection(options);
    this.#keys = new RedisKeys(options.prefix);
    this.#reader = new RedisReader(this.#connection, this.#queues);
    const indexes = new RedisIndexes(this.#connection);
    const lists = new RedisLists(this.#connection, this.#keys, this.#reader, indexes, {
      timers: (tree) => this.#correctTimers(tree),
      webhooks: (tree) => this.#correctWebhooks(tree),
    });
    this.#tables = new RedisReads(this.#keys, this.#reader, lists);
    const channel = this.#keys.channel();
    const { ttl } = options;
    this.#expired = new RedisExpired(this.#connection, this.#keys);
    this.#expiry =
      ttl === undefined
        ? undefined
        : new RedisExpiry({
            connection: this.#connection,
            reader: this.#reader,
            expires: this.#keys.expires(),
            expired: this.#expired,
            seconds: ttl,
          });
    const onChanged = (session: TreeSession): void => this.#expiry?.changed(session);
    let transactions = 0;
    const nextId = (): string => `${(transactions += 1)}`;
    this.#context = { connection: this.#connection, indexes, owner, channel, nextId, onChanged };
    const parts = { keys: this.#keys, reader: this.#reader, indexes, lists };
    this.#unattended = new RedisUnattended(this.#connection, parts, (tree, work) => this.#write(tree, work));
    this.#subscriber = new RedisSubscriber(this.#connection);
    this.#rollbacks = new RedisRollbacks(this.#connection, this.#keys);
    const writes = {
      owner,
      subscribe: (listener: ChannelListener) => void this.#subscriber.subscribe(channel, listener),
      namesIn: (tag: string) => this.#keys.namesIn(tag),
    };
    this.#foreignWrites = new PublishedWrites(writes, {
      onSubscribed: () => this.checkForRollbacks(),
      onTree: (tag, posted, records) => this.#queues.forgetRecords(tag, posted, records),
    });
    this.live = new PublishedLive(redisLiveTransport(this.#connection, this.#subscriber, this.#keys));
  }

  /** The connection for commands, which other components of this process may use. */
  get connection(): RedisConnection {
    return this.#connection;
  }

  get tables(): StoreTables {
    return this.#tables;
  }

  write<T>(work: () => T): Promise<T> {
    return this.writeTo(undefined, work, (result) => result);
  }

  /**
   * `key`: an agent of the work's tree; if it is `undefined`, the tree is determined first. `finish` gets the tree's cursor before the
   * work: cursors of new rows follow it.
   */
  writeTo<T>(key: AgentKey | undefined, work: () => T, finish: (result: T, done: Done) => T): Promise<T> {
    const done = Promise.withResolvers<T>();
    try {
      if (this.#isClosed) throw new InvariantError("the stores are closed");
      const tree = key ? this.#keys.treeOf(key.tenant, key.agentId) : this.#treeOf(work);
      this.#queues.of(tree, this.#context).add({
        run: (session) => this.#tables.over(session, work),
        resolve: (result, written) => done.resolve(finish(result as T, written)),
        reject: done.reject,
      });
    } catch (error) {
      done.reject(error);
    }
    return done.promise;
  }

  read<T>(work: () => T): Promise<T> {
    return this.#noted(() => this.#readAnew(work));
  }

  /** Runs a read; `close` waits for it. */
  #noted<T>(read: () => Promise<T>): Promise<T> {
    if (this.#isClosed) return Promise.reject(new InvariantError("the stores are closed"));
    let reading: Promise<T>;
    try {
      reading = read();
    } catch (error) {
      return Promise.reject(error);
    }
    this.#reading.add(reading);
    const forget = (): void => void this.#reading.delete(reading);
    reading.then(forget, forget);
    return reading;
  }

  async #readAnew<T>(work: () => T): Promise<T> {
    const session = new ReadSession();
    for (;;) {
      try {
        return this.#tables.over(session, work);
      } catch (error) {
        if (!(error instanceof Missing)) throw error;
        session.answers.set(error.key, await error.load());
      }
    }
  }

  /** Read by one script, because separate reads may see different moments. */
  treeActivity(tenant: string, rootAgentId: string): Promise<TreeActivity | undefined> {
    return this.#noted(() => readTreeActivity(this.#connection, this.#keys.treeOf(tenant, rootAgentId)));
  }

  treeHead(tenant: string, rootAgentId: string): Promise<TreeHead | undefined> {
    return this.#noted(() => readTreeHead(this.#connection, this.#keys.treeOf(tenant, rootAgentId), rootAgentId));
  }

  /** The outcome includes the holder of the agent at the moment of the post, if the holder's process was seen recently. */
  async openTurn(key: AgentKey, command: TurnCommand, now: number): Promise<OpenTurnOutcome> {
    const open = (): OpenTurnOutcome => openTurn(this.#tables, key, command, now);
    return deepFreeze(await this.writeTo(key, open, (opened, { holders }) => this.#withHolder(key, opened, holders)));
  }

  /** Like `openTurn`. */
  async steer(key: AgentKey, command: SteerCommand, now: number): Promise<SteerOutcome> {
    const post = (): SteerOutcome => steer(this.#tables, key, command, now);
    return deepFreeze(await this.writeTo(key, post, (posted, { holders }) => this.#withHolder(key, posted, holders)));
  }

  #withHolder<Outcome extends object>(key: AgentKey, outcome: Outcome, holders: ReadonlyMap<string, string>): Outcome {
    const inbox = this.#keys.treeOf(key.tenant, key.agentId).ofAgent("inbox", key.agentId);
    const holder = this.#processes.get(holders.get(inbox) ?? "");
    const isKnown = holder !== undefined && performance.now() < holder.until;
    return isKnown && "posted" in outcome ? { ...outcome, holder: holder.process } : outcome;
  }

  async holder(key: AgentKey): ReturnType<Stores["holder"]> {
    const holder = await this.read(() => holderOf(this.#tables, key));
    if (holder) {
      const until = performance.now() + PROCESS_KNOWN_MS;
      if (this.#processes.size >= PROCESSES_KEPT) this.#processes.clear();
      this.#processes.set(holder.process.processId, { process: holder.process, until });
    }
    return holder;
  }

  /** Uses one script if the position to read from is known. */
  async lookAtTurn(key: AgentKey, turnId: string, after?: number): Promise<StoredLook | undefined> {
    const { tenant, agentId } = key;
    if (after !== undefined) {
      const tree = this.#keys.treeOf(tenant, agentId);
      const look = await this.#noted(() => this.#reader.turnLook(tree, key, turnId, after));
      if (look) return deepFreeze(look);
    }
    return deepFreeze(await this.read(() => lookAtTurn(this.#tables, key, turnId, after)));
  }

  unattended(...[tenant, query, steady]: Parameters<Database["unattended"]>): ReturnType<Database["unattended"]> {
    return this.#noted(() => this.#unattended.find(tenant, query, steady));
  }

  posted(keys: readonly AgentKey[]): Promise<AgentKey[]> {
    return this.#noted(() => postedTo(this.#connection, this.#keys, keys));
  }

  dropTree({ tenant, agentId }: AgentKey): void {
    this.#queues.drop(this.#keys.treeOf(tenant, agentId));
  }

  async scrub(tree?: AgentKey): Promise<void> {
    if (!tree) return;
    const { tenant, agentId } = tree;
    await this.#noted(() => this.#expired.drop(this.#keys.treeOf(tenant, agentId)));
  }

  onForeignWrite(listener: (writes: ForeignWrites) => void): () => void {
    return this.#foreignWrites.listen(listener);
  }

  onRolledBack(listener: (found: RolledBackTree) => void): () => void {
    return this.#rollbacks.listen(listener);
  }

  /** Call it after a period without contact to Redis, and when data is missing. */
  checkForRollbacks(): void {
    const check = this.#noted(async () => {
      await this.#connection.keepLayout();
      await this.#rollbacks.check(this.#queues.all());
    });
    // If Redis does not answer now, the next write detects a rollback.
    check.catch(() => undefined);
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#foreignWrites.close();
    this.live.close();
    await this.#subscriber.close();
    // Wait for reads and writes in progress.
    await Promise.allSettled(this.#reading);
    await this.#queues.idle();
    await this.#expiry?.close((tag) => this.#keys.ofTag(tag));
    await this.#expired.close();
    await this.#connection.close();
  }

  /** Determines the tree of a piece of work: the first one that it accesses. */
  #treeOf(work: () => unknown): TreeKeys {
    try {
      this.#tables.over("finding its tree", work);
    } catch (error) {
      if (error instanceof AboutTree) return error.tree;
      throw error;
    }
    throw new InvariantError("work that accesses no tree cannot be written");
  }

  /** Corrects the time of the tree's first timer in the index of timers. */
  async #correctTimers(tree: TreeKeys): Promise<void> {
    const { indexes } = this.#context;
    const keys = this.#keys.index("timers", tree.partition);
    const lastWritten = await indexes.lastWritten(keys, tree.tag);
    const score = await this.#write(tree, (session) => {
      session.alone();
      const first = session.firstDue(() => this.#reader.lowestScore(tree.due));
      // Must not create the tree.
      if (first === "" && session.get(rowKinds.timersFrom) === undefined) return undefined;
      // Written even if unchanged: the new version makes a concurrent transaction that sets an earlier timer write the index again.
      session.put(rowKinds.timersFrom, first === "" ? NEVER : Number(first));
      return first;
    });
    if (score === undefined) await indexes.forget(keys, tree.tag);
    else await indexes.correct(keys, tree.tag, lastWritten, score === "" ? undefined : Number(score));
  }

  /** Corrects the time at which the tree's webhooks are due in the index of webhooks. */
  async #correctWebhooks(tree: TreeKeys): Promise<void> {
    const { indexes } = this.#context;
    const keys = this.#keys.index("webhooks", tree.partition, tree.tenant);
    const lastWritten = await indexes.lastWritten(keys, tree.tag);
    const dueAt = await this.#write(tree, (session) => {
      const stored = session.get(rowKinds.webhooks);
      // Written even if unchanged, for the same reason as the time of the first timer.
      if (stored) session.put(rowKinds.webhooks, stored);
      return stored?.dueAt;
    });
    if (dueAt === undefined) await indexes.forget(keys, tree.tag);
    else await indexes.correct(keys, tree.tag, lastWritten, dueAt);
  }

  #write<T>(tree: TreeKeys, work: (session: TreeSession) => T): Promise<T> {
    const done = Promise.withResolvers<T>();
    this.#queues.of(tree, this.#context).add({
      run: work,
      resolve: (result) => done.resolve(result as T),
      reject: done.reject,
    });
    return done.promise;
  }
}
