import { createHash, randomUUID } from "node:crypto";
import { InvariantError } from "../../errors/index.ts";
import { type AgentKey, rootOf } from "../../state/index.ts";
import type { ForeignWrites } from "../rules/foreign-writes.ts";
import type { RolledBackTree } from "../rules/ports.ts";
import { type ChannelListener, PublishedLive } from "../rules/published-live.ts";
import { PublishedWrites } from "../rules/published-writes.ts";
import type { Database, StoreTables } from "../rules/tables.ts";
import { StoresConnection } from "./stores-connection.ts";
import type { Query } from "../../postgres/index.ts";
import { PostgresHeartbeats } from "./postgres-heartbeats.ts";
import { PostgresLists } from "./postgres-lists.ts";
import type { CheckedOptions } from "./postgres-options.ts";
import { PostgresReader } from "./postgres-reader.ts";
import { PostgresRollbacks } from "./postgres-rollbacks.ts";
import { PostgresSchedules } from "./postgres-schedules.ts";
import { Missing, ReadSession } from "./postgres-session.ts";
import { PostgresSubscriber } from "./postgres-subscriber.ts";
import { AboutTree, PostgresTables } from "./postgres-tables.ts";
import { isTag, namesIn, type TreeName, treeOf } from "./postgres-text.ts";
import { TreeQueues } from "./postgres-tree-queue.ts";
import { isAtRest, PostgresUnattended } from "./postgres-unattended.ts";

/**
 * Trees in Postgres that are shared by several processes.
 * Owns: the assignment of work to the queues of trees. Does not own: rows, transactions.
 *
 * Invariants
 * 1. Work that writes belongs to one tree. Works on one tree in this process take effect in the order of the calls.
 * 2. Work that only reads always reads from Postgres, at one moment.
 */
export class PostgresDatabase implements Database {
  readonly #connection: StoresConnection;
  readonly #tables: PostgresTables;
  readonly #lists: PostgresLists;
  readonly #reader: PostgresReader;
  readonly #queues: TreeQueues;
  readonly #subscriber: PostgresSubscriber;
  readonly #rollbacks: PostgresRollbacks;
  readonly #heartbeats: PostgresHeartbeats;
  readonly #foreignWrites: PublishedWrites;
  readonly #unattended: PostgresUnattended;
  /** One piece of work takes one version. */
  readonly spansTrees = false;
  readonly live: PublishedLive;
  readonly #reading = new Set<Promise<unknown>>();
  #isClosed = false;

  constructor(options: CheckedOptions) {
    const { schema } = options;
    const writer = randomUUID();
    this.#connection = new StoresConnection(options);
    this.#reader = new PostgresReader(schema);
    this.#lists = new PostgresLists(schema);
    this.#tables = new PostgresTables(this.#reader, this.#lists, new PostgresSchedules(schema));
    this.#rollbacks = new PostgresRollbacks(this.#connection);
    this.#heartbeats = new PostgresHeartbeats(this.#connection);
    let writes = 0;
    this.#queues = new TreeQueues({
      connection: this.#connection,
      writer,
      nextWrite: () => (writes += 1),
      onRolledBack: (known, found) => this.#rollbacks.report(known, found),
    });
    this.#unattended = new PostgresUnattended(schema);
    this.#subscriber = new PostgresSubscriber(this.#connection);
    const { channel } = this.#connection;
    const subscribe = (listener: ChannelListener): void => {
      this.#subscriber.subscribe(`${channel}:w`, listener, { isPolled: true });
    };
    this.#foreignWrites = new PublishedWrites(
      { owner: writer, subscribe, namesIn },
      { onSubscribed: () => this.checkForRollbacks(), onTree: (tag) => this.#forget(tag) },
    );
    const channelOf = (tag: string | undefined): string => `${channel}:l${tag === undefined ? "" : `:${hashOf(tag)}`}`;
    this.live = new PublishedLive({
      subscribe: (tag, listener) => this.#subscriber.subscribe(channelOf(tag), listener),
      publish: (tag, text) => this.#subscriber.publish(channelOf(tag), text),
      tagOf: (tenant, rootAgentId) => treeOf(tenant, rootAgentId).tag,
      isTag,
      namesIn,
    });
  }

  get tables(): StoreTables {
    return this.#tables;
  }

  write<T>(work: () => T): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    try {
      this.#assertOpen();
      this.#queues.of(this.#treeOf(work)).add({
        run: (session) => this.#tables.over(session, work),
        resolve: (result) => resolve(result as T),
        reject,
      });
    } catch (error) {
      reject(error);
    }
    return promise;
  }

  read<T>(work: () => T): Promise<T> {
    return this.#noted(() => this.#readAnew(work));
  }

  rest(keys: readonly AgentKey[]): void {
    for (const { tenant, agentId } of keys) this.#forget(treeOf(tenant, rootOf(agentId)).tag);
  }

  dropTree({ tenant, agentId }: AgentKey): void {
    this.#queues.drop(treeOf(tenant, agentId).tag);
  }

  unattended(...[tenant, wanted, steady]: Parameters<Database["unattended"]>): ReturnType<Database["unattended"]> {
    return this.#noted(() =>
      this.#connection.snapshot(async (query) => {
        const processes = await this.#reader.processes(query);
        return await this.#unattended.find(query, { tenant, wanted, steady, processes }, (candidate) =>
          this.#runRead(() => isAtRest(this.#tables, candidate), query),
        );
      }),
    );
  }

  posted(keys: readonly AgentKey[]): Promise<AgentKey[]> {
    return this.#noted(() => this.#lists.posted((...sent) => this.#connection.read(...sent), keys));
  }

  /** Returns false if the process is not registered. */
  heartbeat(processId: string, steady: number): Promise<boolean> {
    return this.#noted(() => this.#heartbeats.write(processId, steady));
  }

  onForeignWrite(listener: (writes: ForeignWrites) => void): () => void {
    return this.#foreignWrites.listen(listener);
  }

  onRolledBack(listener: (found: RolledBackTree) => void): () => void {
    return this.#rollbacks.listen(listener);
  }

  /** Call it after a period without contact to the server, and when data is missing. */
  checkForRollbacks(): void {
    // If the server does not answer now, the next write detects a rollback.
    this.#noted(() => this.#rollbacks.check(this.#queues.all())).catch(() => undefined);
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
    await this.#connection.close();
  }

  /** A read of one statement needs no transaction. */
  async #readAnew<T>(work: () => T): Promise<T> {
    const session = new ReadSession();
    const first = this.#step(session, work);
    if (!(first instanceof Missing)) return first.value;
    const { other } = first;
    if (!other) throw new InvariantError("a read needs rows of a write");
    session.note(other.key, await other.load((...sent) => this.#connection.read(...sent)));
    const second = this.#step(session, work);
    if (!(second instanceof Missing)) return second.value;
    return await this.#connection.snapshot((query) => this.#runRead(work, query));
  }

  /** Runs a read with statements that see one moment. */
  async #runRead<T>(work: () => T, query: Query): Promise<T> {
    const session = new ReadSession();
    for (;;) {
      const step = this.#step(session, work);
      if (!(step instanceof Missing)) return step.value;
      if (!step.other) throw new InvariantError("a read needs rows of a write");
      session.note(step.other.key, await step.other.load(query));
    }
  }

  #step<T>(session: ReadSession, work: () => T): { readonly value: T } | Missing {
    try {
      return { value: this.#tables.over(session, work) };
    } catch (error) {
      if (error instanceof Missing) return error;
      throw error;
    }
  }

  /** Runs a read; `close` waits for it. */
  #noted<T>(read: () => Promise<T>): Promise<T> {
    if (this.#isClosed) return Promise.reject(new InvariantError("the stores are closed"));
    const reading = read();
    this.#reading.add(reading);
    const forget = (): void => void this.#reading.delete(reading);
    reading.then(forget, forget);
    return reading;
  }

  /** Determines the tree of a piece of work: the first one that it accesses. */
  #treeOf(work: () => unknown): TreeName {
    try {
      this.#tables.over("finding its tree", work);
    } catch (error) {
      if (error instanceof AboutTree) return error.tree;
      throw error;
    }
    throw new InvariantError("work that accesses no tree cannot be written");
  }

  /** The rows of a tree that another process has written are read again. A running write detects it by itself. */
  #forget(tag: string): void {
    const queue = this.#queues.known(tag);
    if (queue?.isIdle) queue.cache.forget();
  }

  #assertOpen(): void {
    if (this.#isClosed) throw new InvariantError("the stores are closed");
  }
}

/** Channels have names of at most 63 bytes. */
function hashOf(tag: string): string {
  return createHash("sha256").update(tag).digest("hex").slice(0, 32);
}
