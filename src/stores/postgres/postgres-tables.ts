import type { Account, Moment, Waiter } from "../../budget/index.ts";
import { InvariantError } from "../../errors/index.ts";
import {
  type AgentKey,
  agentOfAccount,
  type AgentRecord,
  type AgentRequest,
  type Artifact,
  type Deletion,
  type Entry,
  type InboxItem,
  JOURNAL_VERSION,
  type JournalRow,
  type Message,
  numberOfTurn,
  type Schedule,
  scheduleDueAt,
  type StoredDefinition,
  type Timer,
  type TreeWebhooks,
  type TurnRecord,
} from "../../state/index.ts";
import type { Committed, SteerMeaning } from "../rules/outcomes.ts";
import type { StoredRow, StoredTree, StoredTurn } from "../rules/ports.ts";
import {
  type AgentFilter,
  type AgentListCursor,
  type DeletionQuery,
  isBySteadyTime,
  type RequestFilter,
  type ScheduleCursor,
  type ScheduleFilter,
  type TurnFilter,
  type TurnListCursor,
} from "../rules/queries.ts";
import { plainOutcome, storedOutcome } from "../rules/stored-values.ts";
import type {
  AddedRow,
  ArtifactMeta,
  Head,
  KeyMeaning,
  OuterKind,
  OuterRows,
  ProcessRow,
  RestoredRow,
  StoreTables,
  TurnChange,
  WaiterChanges,
} from "../rules/tables.ts";
import type { Query } from "../../postgres/index.ts";
import type { PostgresLists } from "./postgres-lists.ts";
import type { PostgresReader } from "./postgres-reader.ts";
import { type PostgresSchedules, schedulesOf } from "./postgres-schedules.ts";
import { emptyHeadRow, type HeadRow, ReadSession, WriteSession } from "./postgres-session.ts";
import { aboveTrees, columnText, deletionsOf, processesTree, type TreeName, treeOf } from "./postgres-text.ts";

/** Thrown by the first access to a tree while the tree of a piece of work is being determined. */
export class AboutTree {
  readonly tree: TreeName;

  constructor(tree: TreeName) {
    this.tree = tree;
  }
}

/** The session of work that writes, of work that only reads, or none while the work's tree is being determined. */
type Session = WriteSession | ReadSession | "finding its tree";

/**
 * The tables in the current session.
 * Owns: which session is current. Does not own: rows; those that are read together with a commit are in the session of their tree, all
 * others are read with one statement each.
 */
export class PostgresTables implements StoreTables {
  readonly #reader: PostgresReader;
  readonly #lists: PostgresLists;
  readonly #schedules: PostgresSchedules;
  #session: Session | undefined;

  constructor(reader: PostgresReader, lists: PostgresLists, schedules: PostgresSchedules) {
    this.#reader = reader;
    this.#lists = lists;
    this.#schedules = schedules;
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

  agent(key: AgentKey): AgentRecord | undefined {
    const session = this.#of(key);
    if (session instanceof WriteSession) return session.live("agent", key.agentId)?.value;
    return session.ask(keyOf("agent", key), (query) => this.#reader.agent(query, key));
  }

  putAgent(record: AgentRecord): void {
    const { tenant, agentId, parentAgentId, sessionId, ownerId, createdAt } = record;
    const session = this.#writing(treeOf(tenant, agentId));
    const isNew = this.agent(record) === undefined;
    session.put("agent", agentId, { value: record });
    session.write("agents", {
      key: [columnText(agentId, "agent id")],
      values: [
        columnText(tenant, "tenant"),
        columnTextOrNull(parentAgentId, "agent id"),
        columnTextOrNull(sessionId, "session id"),
        columnTextOrNull(ownerId, "owner id"),
        createdAt,
        JSON.stringify(record),
      ],
    });
    if (!isNew) return;
    session.countAgent();
    session.put("inbox", agentId, { value: new Map() });
    session.put("open", agentId, { value: new Map() });
    session.put("children", agentId, { value: [] });
    this.#putHeadRow(session, agentId, emptyHeadRow);
    if (parentAgentId !== null) session.change("children", parentAgentId, (ids) => [...ids, agentId]);
  }

  childrenOf(key: AgentKey): AgentRecord[] {
    const { tenant, agentId } = key;
    const session = this.#of(key);
    if (!(session instanceof WriteSession)) {
      return session.ask(keyOf("children", key), (query) => this.#reader.childrenOf(query, key));
    }
    const ids = session.live("children", agentId)?.value ?? [];
    return ids.flatMap((id) => this.agent({ tenant, agentId: id }) ?? []);
  }

  head(key: AgentKey): Head {
    return this.#headRow(key).head;
  }

  putHead(key: AgentKey, head: Head, outcome?: Committed): void {
    const before = this.#headRow(key);
    const value = outcome ? { value: storedOutcome(outcome) ?? plainOutcome } : before.outcome;
    this.#putHeadRow(this.#ofAgent(key), key.agentId, { head, outcome: value });
  }

  lastOutcome(key: AgentKey): Committed | undefined {
    const { head, outcome } = this.#headRow(key);
    if (head.batchId === null) return undefined;
    const { hasRow, warnings, posted, timers } = outcome.value;
    const row = hasRow ? this.#newestRow(key) : undefined;
    return { type: "committed", entries: row?.entries ?? [], cursor: row?.cursor ?? 0, warnings, posted, timers };
  }

  account(tenant: string, accountId: string): Account | undefined {
    const agentId = agentOfAccount(accountId);
    const session = this.#of({ tenant, agentId });
    if (session instanceof WriteSession) return session.live("account", accountId)?.value;
    return session.ask(`account|${tenant}|${accountId}`, (query) =>
      this.#reader.account(query, tenant, agentId, accountId),
    );
  }

  putAccount(tenant: string, rootAgentId: string, account: Account): void {
    const session = this.#writing(treeOf(tenant, rootAgentId));
    const isNew = session.live("account", account.id) === undefined;
    session.put("account", account.id, { value: account });
    session.write("accounts", { key: [columnText(account.id, "account id")], values: [JSON.stringify(account)] });
    if (!isNew) return;
    session.put("waiters", account.id, { value: [] });
    session.change("accounts", "", (ids) => [...ids, account.id]);
  }

  accounts(tenant: string, rootAgentId: string): Account[] {
    const session = this.#of({ tenant, agentId: rootAgentId });
    if (!(session instanceof WriteSession)) {
      return session.ask(`accounts|${tenant}|${rootAgentId}`, (query) =>
        this.#reader.accounts(query, tenant, rootAgentId),
      );
    }
    const ids = session.live("accounts", "")?.value ?? [];
    return ids.flatMap((id) => session.live("account", id)?.value ?? []);
  }

  waiters(tenant: string, { id }: Account): readonly Waiter[] {
    const agentId = agentOfAccount(id);
    const session = this.#of({ tenant, agentId });
    if (session instanceof WriteSession) return session.live("waiters", id)?.value ?? [];
    return session.ask(`waiters|${tenant}|${id}`, (query) => this.#reader.waiters(query, tenant, agentId, id));
  }

  putWaiters(tenant: string, rootAgentId: string, { account: { id }, waiters, put, removed }: WaiterChanges): void {
    const session = this.#writing(treeOf(tenant, rootAgentId));
    const account = columnText(id, "account id");
    for (const key of removed) {
      session.write("waiters", { key: [account, columnText(key, "key of an ask")], values: null });
    }
    for (const waiter of put) {
      const key = columnText(waiter.ask.key, "key of an ask");
      session.write("waiters", { key: [account, key], values: [waiter.place, JSON.stringify(waiter)] });
    }
    session.put("waiters", id, { value: waiters });
  }

  outerRow<Kind extends OuterKind>(tenant: string, kind: Kind, id: string): OuterRows[Kind] | undefined {
    const load = (query: Query) => this.#reader.outerRow(query, tenant, kind, id);
    const tree = aboveTrees(tenant);
    const session = this.#at(tree);
    const name = `above|${kind}|${tenant}|${id}`;
    if (session instanceof ReadSession) return session.ask(name, load);
    return this.#writing(tree).other(name, load, undefined);
  }

  putOuterRow<Kind extends OuterKind>(tenant: string, kind: Kind, id: string, row: OuterRows[Kind]): void {
    const session = this.#writing(aboveTrees(tenant));
    session.putOther(`above|${kind}|${tenant}|${id}`, row);
    session.write("outer_rows", { key: [kind, columnText(id, "id")], values: [JSON.stringify(row)] });
  }

  removeOuterRow(tenant: string, kind: OuterKind, id: string): void {
    const session = this.#writing(aboveTrees(tenant));
    session.putOther(`above|${kind}|${tenant}|${id}`, undefined);
    session.write("outer_rows", { key: [kind, columnText(id, "id")], values: null });
  }

  outerIds(tenant: string, kind: OuterKind, after: string | undefined, limit: number): string[] {
    return this.#outerPage(tenant, kind, after, limit).map(({ id }) => id);
  }

  outerRows<Kind extends OuterKind>(
    tenant: string,
    kind: Kind,
    after: string | undefined,
    limit: number,
  ): OuterRows[Kind][] {
    return this.#outerPage(tenant, kind, after, limit).map(({ row }) => row.value);
  }

  addToInbox(key: AgentKey, item: InboxItem): boolean {
    const session = this.#ofAgent(key);
    const items = this.#items(session, key.agentId);
    if (items.has(item.key)) return false;
    session.put("inbox", key.agentId, { value: new Map([...items, [item.key, item]]) });
    session.write("inbox", { key: inboxKey(key.agentId, item.key), values: [JSON.stringify(item)] });
    return true;
  }

  inboxSize(key: AgentKey): number {
    return this.#items(this.#writing(treeOf(key.tenant, key.agentId)), key.agentId).size;
  }

  removeFromInbox(key: AgentKey, itemKeys: readonly string[]): void {
    if (itemKeys.length === 0) return;
    const session = this.#writing(treeOf(key.tenant, key.agentId));
    const items = new Map(this.#items(session, key.agentId));
    for (const itemKey of itemKeys) {
      if (items.delete(itemKey)) session.write("inbox", { key: inboxKey(key.agentId, itemKey), values: null });
    }
    session.put("inbox", key.agentId, { value: items });
  }

  inbox(key: AgentKey): InboxItem[] {
    const session = this.#of(key);
    if (session instanceof WriteSession) return [...this.#items(session, key.agentId).values()];
    return [...session.ask(keyOf("inbox", key), (query) => this.#reader.inbox(query, key))];
  }

  addRow(key: AgentKey, entries: readonly Entry[], messages: readonly Message[]): AddedRow {
    const session = this.#ofAgent(key);
    const follows = session.lastCursor;
    return { cursor: this.#addRowAt(session, undefined, { agentId: key.agentId, entries, messages }), follows };
  }

  rowsFrom(key: AgentKey, fromSeq: number): JournalRow[] {
    return this.#ask(keyOf(`rows|${fromSeq}`, key), (query) => this.#reader.rowsFrom(query, key, fromSeq));
  }

  treeRows(tenant: string, rootAgentId: string, afterCursor: number, limit: number): JournalRow[] {
    return this.#ask(`rows|${tenant}|${rootAgentId}`, (query) =>
      this.#reader.treeRows(query, { tenant, rootAgentId }, afterCursor, limit),
    );
  }

  lastCursor(tenant: string, rootAgentId: string): number {
    return this.#ask(`cursor|${tenant}|${rootAgentId}`, (query) => this.#reader.lastCursor(query, tenant, rootAgentId));
  }

  messages(key: AgentKey, newest: number | undefined): Message[] {
    return this.#ask(keyOf("messages", key), (query) => this.#reader.messages(query, key, newest));
  }

  messagesById(key: AgentKey, ids: readonly string[]): Message[] {
    return this.#ask(keyOf(`messages|${JSON.stringify(ids)}`, key), (query) =>
      this.#reader.messagesById(query, key, ids),
    );
  }

  clearMessages(key: AgentKey): void {
    this.#ofAgent(key).clear("messages", columnText(key.agentId, "agent id"));
  }

  putArtifact(key: AgentKey, artifact: Artifact): void {
    const { content, ...meta } = artifact;
    const session = this.#ofAgent(key);
    const metas = this.#artifactsOf(session, key);
    const isKnown = metas.some(({ artifactId }) => artifactId === meta.artifactId);
    const others = metas.map((one) => (one.artifactId === meta.artifactId ? meta : one));
    session.putOther(keyOf("artifacts", key), isKnown ? others : [...metas, meta]);
    session.write("artifacts", {
      key: [columnText(key.agentId, "agent id"), columnText(meta.artifactId, "artifact id")],
      values: [JSON.stringify(meta), JSON.stringify(content)],
    });
  }

  artifactMeta(key: AgentKey, artifactId: string): ArtifactMeta | undefined {
    return this.#artifactsOf(this.#ofAgent(key), key).find((meta) => meta.artifactId === artifactId);
  }

  newestVersion(key: AgentKey, name: string): number {
    const ofName = this.#artifactsOf(this.#ofAgent(key), key).filter((meta) => meta.name === name);
    return ofName.reduce((newest, { version }) => Math.max(newest, version), 0);
  }

  clearArtifacts(key: AgentKey): void {
    const session = this.#ofAgent(key);
    session.clear("artifacts", columnText(key.agentId, "agent id"));
    session.putOther(keyOf("artifacts", key), []);
  }

  artifacts(key: AgentKey): ArtifactMeta[] {
    return [...this.#ask(keyOf("artifacts", key), (query) => this.#reader.artifacts(query, key))];
  }

  artifact(key: AgentKey, artifactId: string): Artifact | undefined {
    return this.#ask(keyOf(`artifact|${artifactId}`, key), (query) => this.#reader.artifact(query, key, artifactId));
  }

  artifactByName(key: AgentKey, name: string, version: number | undefined): Artifact | undefined {
    const ofName = this.artifacts(key).filter((meta) => meta.name === name);
    const newest = ofName.reduce((highest, meta) => Math.max(highest, meta.version), 0);
    const wanted = ofName.find((meta) => meta.version === (version ?? newest));
    return wanted && this.artifact(key, wanted.artifactId);
  }

  request(key: AgentKey, requestId: string): AgentRequest | undefined {
    const load = (query: Query) => this.#reader.request(query, key, requestId);
    const session = this.#of(key);
    if (!(session instanceof WriteSession)) return session.ask(keyOf(`request|${requestId}`, key), load);
    return session.other(keyOf(`request|${requestId}`, key), load, undefined);
  }

  putRequest(request: AgentRequest): void {
    const { tenant, agentId, rootAgentId, requestId, turnId, ownerId, status, openedAt, decidedWith } = request;
    const session = this.#ofAgent(request);
    session.putOther(keyOf(`request|${requestId}`, request), request);
    const open = new Map(session.live("open", agentId)?.value ?? []);
    if (status === "open") open.set(requestId, request);
    else open.delete(requestId);
    session.put("open", agentId, { value: open });
    if (decidedWith) {
      const meaning: KeyMeaning = { turnId: decidedWith.turnId, requestId };
      session.putOther(keyOf(`key|${decidedWith.key}`, { tenant, agentId: rootAgentId }), meaning);
    }
    session.write("requests", {
      key: [columnText(agentId, "agent id"), columnText(requestId, "request id")],
      values: [
        columnText(tenant, "tenant"),
        columnText(turnId, "turn id"),
        columnTextOrNull(ownerId ?? null, "owner id"),
        status,
        openedAt,
        decidedWith ? columnText(decidedWith.key, "key of a decision") : null,
        JSON.stringify(request),
      ],
    });
  }

  openRequestsOf(key: AgentKey, turnId: string): AgentRequest[] {
    const open = this.#ofAgent(key).live("open", key.agentId)?.value ?? new Map<string, AgentRequest>();
    return [...open.values()].filter((request) => request.turnId === turnId);
  }

  requests(filter: RequestFilter, after: AgentRequest | undefined, limit: number): AgentRequest[] {
    return this.#ask(`requests|${JSON.stringify(filter)}`, (query) =>
      this.#lists.requests(query, filter, after, limit),
    );
  }

  putTurn(turn: StoredTurn): void {
    const { tenant, agentId, turnId, number, sessionId, ownerId, key, hash, status, stopReason } = turn;
    const session = this.#ofAgent(turn);
    if (key !== null && hash !== null) session.putOther(keyOf(`key|${key}`, turn), { turnId, hash });
    session.write("turns", {
      key: [columnText(agentId, "agent id"), number],
      values: [
        columnText(turnId, "turn id"),
        columnText(tenant, "tenant"),
        columnTextOrNull(sessionId, "session id"),
        columnTextOrNull(ownerId, "owner id"),
        columnTextOrNull(key, "turn key"),
        hash,
        status,
        stopReason,
        turn.openedAt,
        turn.changedAt,
      ],
    });
  }

  moveTurn(key: AgentKey, turnId: string, { status, stopReason, changedAt }: TurnChange): void {
    const session = this.#ofAgent(key);
    const id = [columnText(key.agentId, "agent id"), numberOfTurn(turnId)] as const;
    const opened = session.changed("turns", id);
    if (!opened?.values) return session.write("moves", { key: id, values: [status, stopReason, changedAt] });
    const [turn, tenant, session_, owner, turnKey, hash, , , openedAt] = opened.values;
    const fixed = [turn, tenant, session_, owner, turnKey, hash].map((value) => value ?? null);
    session.write("turns", { key: id, values: [...fixed, status, stopReason, openedAt ?? 0, changedAt] });
  }

  putSteer(key: AgentKey, steerId: string, meaning: SteerMeaning): void {
    const { steer, turnId, step, hash } = meaning;
    const session = this.#ofAgent(key);
    session.putOther(keyOf(`key|${steerId}`, key), meaning);
    session.write("steers", {
      key: [columnText(key.agentId, "agent id"), columnText(steerId, "steer id")],
      values: [steer, columnText(turnId, "turn id"), step, hash],
    });
  }

  meaningOf(root: AgentKey, text: string): KeyMeaning | undefined {
    const load = (query: Query) => this.#reader.meaningOf(query, root, text);
    const session = this.#of(root);
    if (!(session instanceof WriteSession)) return session.ask(keyOf(`key|${text}`, root), load);
    return session.other(keyOf(`key|${text}`, root), load, undefined);
  }

  turns(filter: TurnFilter, limit: number, place?: TurnListCursor): TurnRecord[] {
    return this.#ask(`turns|${JSON.stringify(filter)}`, (query) => this.#lists.turns(query, filter, limit, place));
  }

  turnsOf(key: AgentKey): StoredTurn[] {
    return this.#ask(keyOf("turns", key), (query) => this.#reader.turnsOf(query, key));
  }

  keepDefinition(tenant: string, rootAgentId: string, definition: StoredDefinition): void {
    const session = this.#writing(treeOf(tenant, rootAgentId));
    const hash = columnText(definition.hash, "hash of a definition");
    session.write("definitions", { key: [hash], values: [JSON.stringify(definition)] });
  }

  definition(tenant: string, rootAgentId: string, hash: string): StoredDefinition | undefined {
    return this.#ask(`definition|${tenant}|${rootAgentId}|${hash}`, (query) =>
      this.#reader.definition(query, { tenant, rootAgentId }, hash),
    );
  }

  definitionsOf(tenant: string, rootAgentId: string): StoredDefinition[] {
    return this.#ask(`definitions|${tenant}|${rootAgentId}`, (query) =>
      this.#reader.definitionsOf(query, tenant, rootAgentId),
    );
  }

  setTimer(timer: Timer): void {
    const session = this.#ofAgent(timer);
    session.write("timers", {
      key: [columnText(timer.agentId, "agent id"), columnText(timer.id, "timer id")],
      values: [timer.dueAt, isBySteadyTime(timer), JSON.stringify(timer)],
    });
  }

  clearTimer({ tenant, agentId }: AgentKey, timerId: string): void {
    const session = this.#writing(treeOf(tenant, agentId));
    session.write("timers", {
      key: [columnText(agentId, "agent id"), columnText(timerId, "timer id")],
      values: null,
    });
  }

  timersOf(key: AgentKey): Timer[] {
    return this.#ask(keyOf("timers", key), (query) => this.#reader.timersOf(query, key));
  }

  dueTimers(moment: Moment, limit: number): Timer[] {
    return this.#ask("due", (query) => this.#reader.dueTimers(query, moment, limit));
  }

  nextTimerAt(): number | undefined {
    return this.#ask("next", (query) => this.#reader.nextTimerAt(query));
  }

  timer(key: AgentKey, timerId: string): Timer | undefined {
    return this.#ask(keyOf(`timer|${timerId}`, key), (query) => this.#reader.timer(query, key, timerId));
  }

  process(processId: string): ProcessRow | undefined {
    const session = this.#at(processesTree);
    const isOwnTree = session instanceof WriteSession && session.tree.tag === processesTree.tag;
    if (isOwnTree) return this.#processRows(session).get(processId);
    const load = (query: Query) => this.#reader.process(query, processId);
    // In the transaction of a tree, the state of a process is read once and not checked again.
    if (session instanceof WriteSession) return session.beside(`process|${processId}`, load);
    return session.ask(`process|${processId}`, load);
  }

  processes(): ProcessRow[] {
    const session = this.#at(processesTree);
    if (session instanceof WriteSession) return [...this.#processRows(session).values()];
    return [...session.ask("processes", (query) => this.#reader.processes(query))];
  }

  putProcess(row: ProcessRow): void {
    const session = this.#writing(processesTree);
    session.putOther("processes", new Map([...this.#processRows(session), [row.processId, row]]));
    session.write("processes", {
      key: [columnText(row.processId, "process id")],
      values: [JSON.stringify(row)],
    });
  }

  removeProcess(processId: string): void {
    const session = this.#writing(processesTree);
    const rows = new Map(this.#processRows(session));
    rows.delete(processId);
    session.putOther("processes", rows);
    session.write("processes", { key: [columnText(processId, "process id")], values: null });
  }

  listAgents(filter: AgentFilter, limit: number, place?: AgentListCursor): AgentRecord[] {
    return this.#ask(`agents|${JSON.stringify(filter)}`, (query) => this.#lists.agents(query, filter, limit, place));
  }

  agentsOfTree(tenant: string, rootAgentId: string): AgentRecord[] {
    return this.#askAlone(treeOf(tenant, rootAgentId), "tree", (query) =>
      this.#reader.agentsOfTree(query, tenant, rootAgentId),
    );
  }

  storedRows(tenant: string, rootAgentId: string): StoredRow[] {
    return this.#askAlone(treeOf(tenant, rootAgentId), "stored", (query) =>
      this.#reader.storedRows(query, tenant, rootAgentId),
    );
  }

  removeTree(tenant: string, rootAgentId: string): void {
    this.#writing(treeOf(tenant, rootAgentId)).removeAll();
  }

  purgeTree(tenant: string, rootAgentId: string): void {
    this.#writing(treeOf(tenant, rootAgentId)).purge();
  }

  deletion(tenant: string, idHash: string): Deletion | undefined {
    const load = (query: Query) => this.#reader.deletion(query, tenant, idHash);
    const session = this.#at(deletionsOf(tenant));
    const name = `deletion|${tenant}|${idHash}`;
    return session instanceof ReadSession ? session.ask(name, load) : session.beside(name, load);
  }

  putDeletion(deletion: Deletion): void {
    const { tenant, idHash, deletedAt, pending } = deletion;
    this.#writing(deletionsOf(tenant)).write("deletions", {
      key: [columnText(idHash, "hash of an id")],
      values: [deletedAt, pending !== undefined, JSON.stringify(deletion)],
    });
  }

  removeDeletion(tenant: string, idHash: string): void {
    this.#writing(deletionsOf(tenant)).write("deletions", { key: [columnText(idHash, "hash of an id")], values: null });
  }

  deletions(query: DeletionQuery & { readonly limit: number }): Deletion[] {
    return this.#ask("deletions", (sent) => this.#reader.deletions(sent, query));
  }

  restoreRows(tenant: string, rows: readonly RestoredRow[]): number[] {
    return rows.map(({ row, cursor }) => this.#addRowAt(this.#ofAgent({ tenant, agentId: row.agentId }), cursor, row));
  }

  projections(tenant: string, rootAgentId: string): StoredTree["projections"] {
    return this.#ask(`projections|${tenant}|${rootAgentId}`, (query) =>
      this.#reader.projections(query, tenant, rootAgentId),
    );
  }

  projectionCursor(tenant: string, name: string, rootAgentId: string): number {
    return this.projections(tenant, rootAgentId).find((one) => one.name === name)?.cursor ?? 0;
  }

  moveProjection(tenant: string, name: string, rootAgentId: string, cursor: number): void {
    if (cursor === 0) return;
    const session = this.#writing(treeOf(tenant, rootAgentId));
    const key = [columnText(name, "projection name")];
    const [before] = session.changed("projections", key)?.values ?? [];
    session.write("projections", { key, values: [Math.max(cursor, Number(before ?? 0))] });
  }

  webhooks(tenant: string, rootAgentId: string): TreeWebhooks | undefined {
    const load = (query: Query) => this.#reader.webhooks(query, tenant, rootAgentId);
    const session = this.#of({ tenant, agentId: rootAgentId });
    const key = `webhooks|${tenant}|${rootAgentId}`;
    if (!(session instanceof WriteSession)) return session.ask(key, load);
    return session.other(key, load, undefined);
  }

  putWebhooks(webhooks: TreeWebhooks): void {
    const { tenant, rootAgentId, dueAt } = webhooks;
    const session = this.#writing(treeOf(tenant, rootAgentId));
    session.putOther(`webhooks|${tenant}|${rootAgentId}`, webhooks);
    session.write("webhooks", {
      key: [],
      values: [columnText(tenant, "tenant"), columnText(rootAgentId, "root agent id"), dueAt, JSON.stringify(webhooks)],
    });
  }

  removeWebhooks(tenant: string, rootAgentId: string): void {
    const session = this.#writing(treeOf(tenant, rootAgentId));
    session.putOther(`webhooks|${tenant}|${rootAgentId}`, undefined);
    session.write("webhooks", { key: [], values: null });
  }

  dueWebhooks(tenant: string, now: number, limit: number): TreeWebhooks[] {
    return this.#ask("due webhooks", (query) => this.#reader.dueWebhooks(query, tenant, now, limit));
  }

  schedule(tenant: string, key: string): Schedule | undefined {
    const load = (query: Query) => this.#schedules.find(query, tenant, key);
    const session = this.#at(schedulesOf(tenant));
    const name = `schedule|${tenant}|${key}`;
    if (session instanceof ReadSession) return session.ask(name, load);
    return this.#writing(schedulesOf(tenant)).other(name, load, undefined);
  }

  putSchedule(schedule: Schedule): void {
    const { tenant, key, agentId, ownerId } = schedule;
    const session = this.#writing(schedulesOf(tenant));
    session.putOther(`schedule|${tenant}|${key}`, schedule);
    const [agent, owner] = [columnTextOrNull(agentId, "agent id"), columnTextOrNull(ownerId, "owner id")];
    const values = [scheduleDueAt(schedule), agent, owner, JSON.stringify(schedule)];
    session.write("schedules", { key: [columnText(key, "schedule key")], values });
  }

  removeSchedule(tenant: string, key: string): void {
    const session = this.#writing(schedulesOf(tenant));
    session.putOther(`schedule|${tenant}|${key}`, undefined);
    session.write("schedules", { key: [columnText(key, "schedule key")], values: null });
  }

  schedules(filter: ScheduleFilter, limit: number): Schedule[] {
    return this.#ask(`schedules|${JSON.stringify(filter)}`, (query) => this.#schedules.list(query, filter, limit));
  }

  dueSchedules(tenant: string, now: number, limit: number, place?: ScheduleCursor): Schedule[] {
    return this.#ask(`due schedules|${tenant}`, (query) => this.#schedules.due(query, tenant, now, { limit, place }));
  }

  nextScheduleAt(tenant: string, after: number): number | undefined {
    return this.#ask(`next schedule|${tenant}`, (query) => this.#schedules.nextAt(query, tenant, after));
  }

  #outerPage<Kind extends OuterKind>(tenant: string, kind: Kind, after: string | undefined, limit: number) {
    const load = (query: Query) => this.#reader.outerRows(query, { tenant, kind, after, limit });
    const session = this.#at(aboveTrees(tenant));
    const name = `above|${kind}|${tenant}|${limit}|${JSON.stringify(after)}`;
    return session instanceof ReadSession ? session.ask(name, load) : session.beside(name, load);
  }

  #headRow(key: AgentKey): HeadRow {
    const session = this.#of(key);
    if (session instanceof WriteSession) return session.live("head", key.agentId)?.value ?? emptyHeadRow;
    return session.ask(keyOf("head", key), (query) => this.#reader.head(query, key)) ?? emptyHeadRow;
  }

  #putHeadRow(session: WriteSession, agentId: string, row: HeadRow): void {
    const { epoch, holder, seq, at, sign, batchId, openRequests, work } = row.head;
    const outcome = row.outcome.value;
    session.put("head", agentId, { value: row });
    session.write("heads", {
      key: [columnText(agentId, "agent id")],
      values: [
        epoch,
        columnTextOrNull(holder, "process id"),
        seq,
        at,
        sign,
        columnTextOrNull(batchId, "batch id"),
        openRequests,
        work,
        isPlain(outcome) ? null : JSON.stringify(outcome),
      ],
    });
  }

  /** The row of the agent's last batch. */
  #newestRow(key: AgentKey): JournalRow | undefined {
    const session = this.#of(key);
    const name = keyOf("newest", key);
    const load = (query: Query) => this.#reader.newestRow(query, key);
    return session instanceof WriteSession ? session.other(name, load, undefined) : session.ask(name, load);
  }

  /** Adds a row under the given cursor or the next one. */
  #addRowAt(
    session: WriteSession,
    given: number | undefined,
    { agentId, entries, messages }: Pick<StoredRow, "agentId" | "entries" | "messages">,
  ): number {
    const cursor = session.takeCursor(given);
    const agent = columnText(agentId, "agent id");
    const lastSeq = entries.at(-1)?.seq ?? 0;
    session.write("journal", { key: [cursor], values: [agent, lastSeq, JOURNAL_VERSION, JSON.stringify(entries)] });
    const row: JournalRow = { version: JOURNAL_VERSION, cursor, agentId, entries };
    session.putOther(keyOf("newest", { tenant: session.tree.tenant, agentId }), row);
    for (const message of messages) {
      const key = [agent, columnText(message.id, "message id")];
      if (session.changed("messages", key)) continue;
      session.write("messages", { key, values: [cursor, JSON.stringify(message)] });
    }
    return cursor;
  }

  #items(session: WriteSession, agentId: string): ReadonlyMap<string, InboxItem> {
    return session.live("inbox", agentId)?.value ?? new Map<string, InboxItem>();
  }

  #artifactsOf(session: WriteSession, key: AgentKey): readonly ArtifactMeta[] {
    return session.other(keyOf("artifacts", key), (query) => this.#reader.artifacts(query, key), []);
  }

  #processRows(session: WriteSession): ReadonlyMap<string, ProcessRow> {
    const load = async (query: Query): Promise<ReadonlyMap<string, ProcessRow>> =>
      new Map((await this.#reader.processes(query)).map((row) => [row.processId, row]));
    // Heartbeats do not change the version of the tree.
    const written = session.values.get("processes") as ReadonlyMap<string, ProcessRow> | undefined;
    return written ?? session.beside("processes", load);
  }

  /** A read outside of commits. */
  #ask<T>(key: string, load: (query: Query) => Promise<T>): T {
    const session = this.#session;
    if (session instanceof ReadSession) return session.ask(key, load);
    throw new InvariantError(`${key} was read outside of a read`);
  }

  /** A read that work which replaces a tree does too, before its changes. */
  #askAlone<T>(tree: TreeName, what: string, load: (query: Query) => Promise<T[]>): T[] {
    const session = this.#at(tree);
    const key = `${what}|${tree.tag}`;
    if (session instanceof ReadSession) return session.ask(key, load);
    session.alone();
    return session.other(key, load, []);
  }

  /** The session in which the work may write. */
  #writing(tree: TreeName): WriteSession {
    const session = this.#at(tree);
    if (session instanceof WriteSession && session.tree.tag === tree.tag) return session;
    throw new InvariantError(`tree ${tree.tag} cannot be written in the transaction of another tree`);
  }

  /** The session of an agent that must have a record. */
  #ofAgent(key: AgentKey): WriteSession {
    const session = this.#writing(treeOf(key.tenant, key.agentId));
    if (session.live("agent", key.agentId)) return session;
    throw new InvariantError(`cannot write to agent ${key.agentId}: it has no record`);
  }

  #of({ tenant, agentId }: AgentKey): WriteSession | ReadSession {
    const tree = treeOf(tenant, agentId);
    const session = this.#at(tree);
    if (session instanceof ReadSession || session.tree.tag === tree.tag) return session;
    throw new InvariantError(`tree ${tree.tag} was read in the transaction of tree ${session.tree.tag}`);
  }

  #at(tree: TreeName): WriteSession | ReadSession {
    if (this.#session === "finding its tree") throw new AboutTree(tree);
    if (this.#session) return this.#session;
    throw new InvariantError("the tables were used outside of a session");
  }
}

/** Names a value of an agent among the values of its tenant's trees. */
function keyOf(what: string, { tenant, agentId }: AgentKey): string {
  return `${what}|${JSON.stringify([tenant, agentId])}`;
}

function columnTextOrNull(id: string | null, what: string): string | null {
  return id === null ? null : columnText(id, what);
}

function inboxKey(agentId: string, itemKey: string): [string, string] {
  return [columnText(agentId, "agent id"), columnText(itemKey, "inbox key")];
}

function isPlain({ hasRow, warnings, posted, timers }: HeadRow["outcome"]["value"]): boolean {
  return hasRow && warnings.length === 0 && posted.length === 0 && timers.length === 0;
}
