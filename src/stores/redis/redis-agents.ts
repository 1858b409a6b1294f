import type { Account, Waiter } from "../../budget/index.ts";
import { InvariantError } from "../../errors/index.ts";
import { type AgentKey, agentOfAccount, type AgentRecord, type Deletion, type JournalRow } from "../../state/index.ts";
import type { Committed } from "../rules/outcomes.ts";
import { plainOutcome, storedOutcome } from "../rules/stored-values.ts";
import type { Head, OuterKind, OuterRows, ProcessRow, WaiterChanges } from "../rules/tables.ts";
import { fields, type IndexName, isShared, pairOf, type RedisKeys, type TreeKeys } from "./redis-keys.ts";
import type { RedisReader } from "./redis-reader.ts";
import { freshHeadRow, type HeadRow, headText, type RowKind, rowKinds, valueOf, waitersIn } from "./redis-rows.ts";
import { Answers, type Collection, TreeSession } from "./redis-session.ts";
import { readWholeTree, type WholeTree } from "./redis-whole-tree.ts";

/** Thrown by the first access to a tree while the tree of a piece of work is being determined. */
export class AboutTree {
  readonly tree: TreeKeys;

  constructor(tree: TreeKeys) {
    this.tree = tree;
  }
}

/**
 * The session of a tree for work that writes, a session for work that only reads, or none yet while the work's tree is being determined.
 * being found.
 */
type Session = TreeSession | ReadSession | "finding its tree";

/** The rows of agents, heads, accounts and processes in the current session. */
export class RedisAgents {
  protected readonly keys: RedisKeys;
  protected readonly reader: RedisReader;
  #session: Session | undefined;

  constructor(keys: RedisKeys, reader: RedisReader) {
    this.keys = keys;
    this.reader = reader;
  }

  /** Runs synchronous work in a session. */
  over<T>(session: Session, work: () => T): T {
    this.#session = session;
    try {
      return work();
    } finally {
      this.#session = undefined;
    }
  }

  agent({ tenant, agentId }: AgentKey): AgentRecord | undefined {
    return this.at(this.keys.treeOf(tenant, agentId)).get(rowKinds.record(tenant, agentId));
  }

  putAgent(record: AgentRecord): void {
    const { tenant, agentId, parentAgentId } = record;
    const isNew = this.agent({ tenant, agentId }) === undefined;
    const session = this.writing(this.keys.treeOf(tenant, agentId));
    session.put(rowKinds.record(tenant, agentId), record);
    if (!isNew) return;
    const { tree } = session;
    session.do("push", { key: tree.agents }, agentId);
    if (parentAgentId !== null) {
      session.change(this.#children(tree, parentAgentId), (ids) => [...ids, agentId]);
    }
    const addTo = (list: IndexName, ...of: readonly string[]): void =>
      session.writeIndex({
        kind: "name",
        keys: this.keys.index(list, tree.partition, ...of),
        member: agentId,
        score: 0,
      });
    const { sessionId, ownerId } = record;
    addTo("agents", tenant);
    if (parentAgentId === null) {
      addTo("roots", tenant);
      // All lists are read in ascending order, so the newest agents get the lowest scores.
      const keys = this.keys.index("newest", tree.partition, tenant);
      session.writeIndex({ kind: "at", keys, member: agentId, score: -record.createdAt });
    }
    if (sessionId !== null) addTo("session", tenant, sessionId);
    if (ownerId !== null) addTo("owner", tenant, ownerId);
  }

  childrenOf({ tenant, agentId }: AgentKey): AgentRecord[] {
    const tree = this.keys.treeOf(tenant, agentId);
    const ids = this.writing(tree).members(this.#children(tree, agentId));
    return this.at(tree).all(ids.map((id) => rowKinds.record(tenant, id)));
  }

  head(key: AgentKey): Head {
    return this.headRow(key).head;
  }

  putHead(key: AgentKey, head: Head, outcome?: Committed): void {
    const before = this.headRow(key);
    this.putHeadRow(key, { ...before, head, outcome: outcome ? storedOutcome(outcome) : before.outcome });
  }

  lastOutcome(key: AgentKey): Committed | undefined {
    const tree = this.keys.treeOf(key.tenant, key.agentId);
    const { head, outcome } = this.headRow(key);
    if (head.batchId === null) return undefined;
    const { hasRow, warnings, posted, timers } = outcome ?? plainOutcome;
    const row = hasRow ? this.at(tree).newestRow(key.agentId, this.reader) : undefined;
    return { type: "committed", entries: row?.entries ?? [], cursor: row?.cursor ?? 0, warnings, posted, timers };
  }

  account(tenant: string, accountId: string): Account | undefined {
    return this.at(this.keys.treeOf(tenant, agentOfAccount(accountId))).get(rowKinds.account(accountId));
  }

  putAccount(tenant: string, rootAgentId: string, account: Account): void {
    const session = this.writing(this.keys.treeOf(tenant, rootAgentId));
    const kind = rowKinds.account(account.id);
    const isNew = session.get(kind) === undefined;
    session.put(kind, account);
    if (!isNew) return;
    session.do("push", { key: session.tree.accounts }, account.id);
    session.change(this.accountIds(session.tree), (ids) => [...ids, account.id]);
  }

  waiters(tenant: string, { id }: Account): readonly Waiter[] {
    const tree = this.keys.treeOf(tenant, agentOfAccount(id));
    const whole = this.wholeOf(tree);
    if (whole) return waitersIn(whole.waiters, id, tree.waiters);
    if (this.reading(tree)) {
      const stored = this.ask("waiters", () => this.reader.hash(tree.waiters));
      return waitersIn([...stored].flat(), id, tree.waiters);
    }
    return this.writing(tree).members(this.#queue(tree, id));
  }

  putWaiters(tenant: string, rootAgentId: string, { account: { id }, waiters, put, removed }: WaiterChanges): void {
    const session = this.writing(this.keys.treeOf(tenant, rootAgentId));
    const { tree } = session;
    for (const key of removed) session.do("take", { key: tree.waiters }, pairOf(id, key));
    for (const waiter of put) {
      session.do("put", { key: tree.waiters }, pairOf(id, waiter.ask.key), JSON.stringify(waiter));
    }
    session.replace(this.#queue(tree, id), waiters);
  }

  outerRow<Kind extends OuterKind>(tenant: string, kind: Kind, id: string): OuterRows[Kind] | undefined {
    return this.at(this.keys.above(tenant)).get(rowKinds.outer(kind, id));
  }

  putOuterRow<Kind extends OuterKind>(tenant: string, kind: Kind, id: string, row: OuterRows[Kind]): void {
    const session = this.writing(this.keys.above(tenant));
    const rowKind = rowKinds.outer(kind, id);
    const isNew = session.get(rowKind) === undefined;
    session.put(rowKind, row);
    if (isNew) session.do("place", { key: session.tree.ofAgent("index", kind) }, id, "0");
  }

  removeOuterRow(tenant: string, kind: OuterKind, id: string): void {
    const session = this.writing(this.keys.above(tenant));
    session.remove(rowKinds.outer(kind, id));
    session.do("unplace", { key: session.tree.ofAgent("index", kind) }, id);
  }

  /** The ids of each kind are members of a sorted set. */
  outerIds(tenant: string, kind: OuterKind, after: string | undefined, limit: number): string[] {
    const key = this.keys.above(tenant).ofAgent("index", kind);
    return this.ask(`ids|${key}`, () => this.reader.idsAfter(key, after, limit));
  }

  outerRows<Kind extends OuterKind>(
    tenant: string,
    kind: Kind,
    after: string | undefined,
    limit: number,
  ): OuterRows[Kind][] {
    const tree = this.keys.above(tenant);
    const key = tree.ofAgent("index", kind);
    return this.ask(`rows|${key}`, async () => {
      const ids = await this.reader.idsAfter(key, after, limit);
      return await this.reader.rows(
        tree,
        ids.map((id) => rowKinds.outer(kind, id)),
      );
    });
  }

  process(processId: string): ProcessRow | undefined {
    return this.at(this.keys.processes()).get(rowKinds.process(processId));
  }

  processes(): ProcessRow[] {
    const tree = this.keys.processes();
    if (!this.reading(tree)) return this.at(tree).all(processKinds(this.writing(tree).members(this.#processIds(tree))));
    return this.ask("processes", async () => this.reader.rows(tree, processKinds(await this.reader.list(tree.agents))));
  }

  putProcess(row: ProcessRow): void {
    const session = this.writing(this.keys.processes());
    const kind = rowKinds.process(row.processId);
    const isNew = session.get(kind) === undefined;
    session.put(kind, row);
    if (!isNew) return;
    session.do("push", { key: session.tree.agents }, row.processId);
    session.change(this.#processIds(session.tree), (ids) => [...ids, row.processId]);
  }

  deletion(tenant: string, idHash: string): Deletion | undefined {
    return this.at(this.keys.deletions(tenant)).get(rowKinds.deletion(idHash));
  }

  removeProcess(processId: string): void {
    const session = this.writing(this.keys.processes());
    session.remove(rowKinds.process(processId));
    session.do("pull", { key: session.tree.agents }, processId);
    session.change(this.#processIds(session.tree), (ids) => ids.filter((id) => id !== processId));
  }

  /** The session in which the work may write. */
  protected writing(tree: TreeKeys): TreeSession {
    const session = this.#sessionOf(tree);
    if (session instanceof TreeSession && session.tree.tag === tree.tag) return session;
    throw new InvariantError(`tree ${tree.tag} cannot be written in the transaction of another tree`);
  }

  protected reading(tree: TreeKeys): ReadSession | undefined {
    const session = this.#sessionOf(tree);
    return session instanceof ReadSession ? session : undefined;
  }

  /** The session from which rows of a tree are read; rows of processes and deletions can be read in every session. */
  protected at(tree: TreeKeys): RowsOfTree {
    const session = this.#sessionOf(tree);
    if (session instanceof ReadSession) return session.of(tree, this.reader);
    if (session.tree.tag === tree.tag) return session;
    if (!isShared(tree.tag)) {
      throw new InvariantError(`tree ${tree.tag} was read in a transaction of tree ${session.tree.tag}`);
    }
    return new ReadSession(session.answers).of(tree, this.reader);
  }

  /** Returns a value that is loaded once for this piece of work and not validated. */
  protected ask<T>(key: string, load: () => Promise<T>): T {
    if (this.#session instanceof ReadSession || this.#session instanceof TreeSession) {
      return this.#session.answers.ask(key, load);
    }
    throw new InvariantError(`${key} was read outside of a session`);
  }

  /** The complete tree, if this piece of work has read it. */
  protected wholeOf(tree: TreeKeys): WholeTree | undefined {
    const session = this.#sessionOf(tree);
    return session instanceof ReadSession ? session.whole(tree) : session.whole;
  }

  protected readWhole(tree: TreeKeys): WholeTree {
    const session = this.#sessionOf(tree);
    if (session instanceof ReadSession) return session.readWhole(tree, this.reader);
    return session.whole ?? session.loadWhole(() => readWholeTree(this.reader, tree));
  }

  /** The session of an agent that must have a record. */
  protected ofAgent(key: AgentKey): TreeSession {
    if (this.agent(key)) return this.writing(this.keys.treeOf(key.tenant, key.agentId));
    throw new InvariantError(`cannot write to agent ${key.agentId}: it has no record`);
  }

  protected headRow({ tenant, agentId }: AgentKey): HeadRow {
    return this.at(this.keys.treeOf(tenant, agentId)).get(rowKinds.head(agentId)) ?? freshHeadRow;
  }

  protected putHeadRow(key: AgentKey, row: HeadRow): void {
    this.ofAgent(key).put(rowKinds.head(key.agentId), row, headText(row));
  }

  protected accountIds(tree: TreeKeys): Collection<readonly string[]> {
    return this.#list(tree, fields.accounts, tree.accounts);
  }

  #queue(tree: TreeKeys, accountId: string): Collection<readonly Waiter[]> {
    const load = () => this.reader.queueMembers(tree, accountId);
    return { field: fields.queue(accountId), key: tree.waiters, empty: [], load };
  }

  #list(tree: TreeKeys, field: string, key: string): Collection<readonly string[]> {
    return { field, key, empty: [], load: () => this.reader.listMembers(tree, key, field) };
  }

  /** Loads the children of all agents of the tree at once, because callers continue with the children's children. */
  #children(tree: TreeKeys, agentId: string): Collection<readonly string[]> {
    const load = () => this.reader.families(tree, agentId);
    return { field: fields.children(agentId), key: tree.agents, empty: [], load };
  }

  #processIds(tree: TreeKeys): Collection<readonly string[]> {
    return this.#list(tree, fields.processes, tree.agents);
  }

  #sessionOf(tree: TreeKeys): TreeSession | ReadSession {
    if (this.#session === "finding its tree") throw new AboutTree(tree);
    if (this.#session) return this.#session;
    throw new InvariantError("the tables were used outside of a session");
  }
}

function processKinds(ids: readonly string[]): RowKind<ProcessRow>[] {
  return ids.map((id) => rowKinds.process(id));
}

/** The reads that work can do on a tree, whether or not it also writes. */
interface RowsOfTree {
  get<T>(kind: RowKind<T>): T | undefined;
  /** In the order of `kinds`; missing rows are left out. */
  all<T>(kinds: readonly RowKind<T>[]): T[];
  newestRow(agentId: string, reader: RedisReader): JournalRow | undefined;
}

/** The session of work that only reads: every read goes to Redis, and nothing is cached. */
export class ReadSession {
  readonly answers: Answers;

  constructor(answers: Answers = new Answers()) {
    this.answers = answers;
  }

  of(tree: TreeKeys, reader: RedisReader): RowsOfTree {
    const whole = this.whole(tree);
    const get = <T>(kind: RowKind<T>): T | undefined => {
      const row = whole?.rows.get(kind.field);
      if (whole) return row && valueOf(row, kind, tree.rows);
      return this.answers.ask(`row|${tree.rows}|${kind.field}`, () => reader.row(tree, kind));
    };
    return {
      get,
      all: (kinds) => kinds.flatMap((kind) => get(kind) ?? []),
      newestRow: (agentId) => {
        if (whole) return whole.journal.findLast((row) => row.agentId === agentId);
        const index = tree.ofAgent("index", agentId);
        return this.answers.ask(`newest|${index}`, () => reader.newestRow(tree, index));
      },
    };
  }

  /** The tree, if it was read completely. */
  whole(tree: TreeKeys): WholeTree | undefined {
    return this.answers.get(`whole|${tree.tag}`) as WholeTree | undefined;
  }

  readWhole(tree: TreeKeys, reader: RedisReader): WholeTree {
    return this.answers.ask(`whole|${tree.tag}`, () => readWholeTree(reader, tree));
  }
}
