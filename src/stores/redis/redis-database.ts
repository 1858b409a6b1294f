import { randomUUID } from "node:crypto";
import { InvariantError } from "../../errors/index.ts";
import type { ForeignWrites, SetBack, TreeStanding } from "../rules/ports.ts";
import type { LocalDatabase, LocalTables } from "../rules/tables.ts";
import { AboutTree, ReadSession } from "./redis-agents.ts";
import { type CheckedOptions, RedisConnection } from "./redis-connection.ts";
import { RedisRest } from "./redis-expiry.ts";
import { RedisForeignWrites } from "./redis-foreign-writes.ts";
import { RedisHints } from "./redis-indexes.ts";
import { RedisKeys, type TreeKeys } from "./redis-keys.ts";
import { RedisLists } from "./redis-lists.ts";
import { RedisLive } from "./redis-live.ts";
import { RedisUnattended } from "./redis-orphans.ts";
import { RedisReader } from "./redis-reader.ts";
import { RedisReads } from "./redis-reads.ts";
import { RedisSetBacks } from "./redis-rollbacks.ts";
import { rowKinds } from "./redis-rows.ts";
import { Missing, type TreeSession } from "./redis-session.ts";
import { RedisSubscriber } from "./redis-subscriber.ts";
import { type LineContext, TreeLines } from "./redis-tree-queue.ts";
import { readStanding } from "./redis-whole-tree.ts";

/** Stands for no time at all. */
export const NEVER = Number.MAX_SAFE_INTEGER;

/**
 * Trees in Redis, shared with other processes.
 * Owns: which transaction line a piece of work belongs to, and the caches' size. Does not own: rows, transactions.
 *
 * Invariants
 * 1. A piece of work that writes is about one tree, and the works of a tree in this process take effect in the order in
 *    which they were called.
 * 2. What is only read is read anew.
 */
export class RedisDatabase implements LocalDatabase {
  readonly #connection: RedisConnection;
  readonly #keys: RedisKeys;
  readonly #reader: RedisReader;
  readonly #tables: RedisReads;
  readonly #context: LineContext;
  readonly #foreignWrites: RedisForeignWrites;
  readonly #setBacks: RedisSetBacks;
  readonly #subscriber: RedisSubscriber;
  readonly live: RedisLive;
  readonly #rest: RedisRest | undefined;
  readonly #unattended: RedisUnattended;
  readonly #lines = new TreeLines((line) => this.#setBacks.watch(line));
  readonly #reading = new Set<Promise<unknown>>();
  #isClosed = false;

  constructor(options: CheckedOptions) {
    const owner = randomUUID();
    this.#connection = new RedisConnection(options);
    this.#keys = new RedisKeys(options.prefix);
    this.#reader = new RedisReader(this.#connection, this.#lines);
    const hints = new RedisHints(this.#connection);
    const lists = new RedisLists(this.#connection, this.#keys, this.#reader, hints, (tree) =>
      this.#correctTimers(tree),
    );
    this.#tables = new RedisReads(this.#keys, this.#reader, lists);
    const channel = this.#keys.channel();
    const { ttl } = options;
    this.#rest =
      ttl === undefined ? undefined : new RedisRest(this.#connection, this.#reader, this.#keys.expires(), ttl);
    const onChanged = (session: TreeSession): void => this.#rest?.changed(session);
    this.#context = { connection: this.#connection, hints, owner, channel, onChanged };
    const parts = { keys: this.#keys, reader: this.#reader, hints, lists };
    this.#unattended = new RedisUnattended(this.#connection, parts, (tree, work) => this.#write(tree, work));
    this.#subscriber = new RedisSubscriber(this.#connection);
    this.#setBacks = new RedisSetBacks(this.#connection, this.#keys);
    this.#foreignWrites = new RedisForeignWrites(this.#subscriber, this.#keys, owner, {
      onHeard: () => this.lookForSetBacks(),
      onTree: (tag) => this.#lines.doubt(tag),
    });
    this.live = new RedisLive(this.#connection, this.#subscriber, this.#keys);
  }

  get tables(): LocalTables {
    return this.#tables;
  }

  /** `finish` gets the tree's cursor before the work: new rows have the ones after it. */
  write<T>(work: () => T, finish: (result: T, cursorBefore: number) => T = (result) => result): Promise<T> {
    const done = Promise.withResolvers<T>();
    try {
      if (this.#isClosed) throw new InvariantError("the stores were closed, and then used");
      this.#lines.of(this.#treeOf(work), this.#context).add({
        run: (session) => this.#tables.over(session, work),
        resolve: (result, cursorBefore) => done.resolve(finish(result as T, cursorBefore)),
        reject: done.reject,
      });
    } catch (error) {
      done.reject(error);
    }
    return done.promise;
  }

  /** Each piece of work is a part of its own: those that come together share a transaction. */
  part<T>(work: () => T): T {
    return work();
  }

  isFatal(error: unknown): boolean {
    return error instanceof Missing;
  }

  read<T>(work: () => T): Promise<T> {
    return this.#noted(() => this.#readAnew(work));
  }

  /** Closing waits for it. */
  async #noted<T>(read: () => Promise<T>): Promise<T> {
    if (this.#isClosed) throw new InvariantError("the stores were closed, and then used");
    const reading = read();
    this.#reading.add(reading);
    try {
      return await reading;
    } finally {
      this.#reading.delete(reading);
    }
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

  /** Read as a whole: what several questions were answered need not have been true together. */
  standing(tenant: string, rootAgentId: string): Promise<TreeStanding | undefined> {
    return this.#noted(() => readStanding(this.#connection, this.#keys.treeOf(tenant, rootAgentId)));
  }

  unattended(
    ...[tenant, query, steady]: Parameters<LocalDatabase["unattended"]>
  ): ReturnType<LocalDatabase["unattended"]> {
    return this.#noted(() => this.#unattended.find(tenant, query, steady));
  }

  onForeignWrite(listener: (writes: ForeignWrites) => void): () => void {
    return this.#foreignWrites.listen(listener);
  }

  onSetBack(listener: (found: SetBack) => void): () => void {
    return this.#setBacks.listen(listener);
  }

  /** After a time in which nothing was heard of Redis, and when something is found missing. */
  lookForSetBacks(): void {
    const look = this.#noted(() => this.#setBacks.look(this.#lines.all()));
    // What cannot be asked now is found out when it is written to.
    look.catch(() => undefined);
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#foreignWrites.close();
    this.live.close();
    await this.#subscriber.close();
    // What was begun is finished.
    await Promise.allSettled(this.#reading);
    await this.#lines.idle();
    await this.#rest?.close((tag) => this.#keys.ofTag(tag));
    await this.#connection.close();
  }

  /** Which tree a piece of work is about: the first one that it asks for. */
  #treeOf(work: () => unknown): TreeKeys {
    try {
      this.#tables.over("finding out", work);
    } catch (error) {
      if (error instanceof AboutTree) return error.tree;
      throw error;
    }
    throw new InvariantError("a piece of work that is about no tree was to be written");
  }

  /** Makes the list of timers tell when the tree's first one is due, now that it told otherwise. */
  async #correctTimers(tree: TreeKeys): Promise<void> {
    const { hints } = this.#context;
    const keys = this.#keys.hints("timers", tree.partition);
    const told = await hints.lastTold(keys, tree.tag);
    const score = await this.#write(tree, (session) => {
      session.alone();
      const first = session.firstDue(() => this.#reader.lowestScore(tree.due));
      // A tree that is gone, or never was, is not begun anew for this.
      if (first === "" && session.get(rowKinds.timersFrom) === undefined) return undefined;
      // Written also when it is the same: whoever is about to set an earlier one has to tell the list again.
      session.put(rowKinds.timersFrom, first === "" ? NEVER : Number(first));
      return first;
    });
    if (score === undefined) await hints.forget(keys, tree.tag);
    else await hints.correct(keys, tree.tag, told, score === "" ? undefined : Number(score));
  }

  #write<T>(tree: TreeKeys, work: (session: TreeSession) => T): Promise<T> {
    const done = Promise.withResolvers<T>();
    this.#lines.of(tree, this.#context).add({
      run: work,
      resolve: (result) => done.resolve(result as T),
      reject: done.reject,
    });
    return done.promise;
  }
}
