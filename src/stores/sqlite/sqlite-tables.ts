import type { Account, Moment, Waiter } from "../../budget/index.ts";
import type {
  AgentKey,
  AgentRecord,
  AgentRequest,
  Artifact,
  Deletion,
  Entry,
  InboxItem,
  JournalRow,
  Message,
  StoredDefinition,
  Timer,
  Schedule,
  TreeWebhooks,
  TurnRecord,
} from "../../state/index.ts";
import type { Committed, SteerMeaning } from "../rules/outcomes.ts";
import type { StoredRow, StoredTree, StoredTurn } from "../rules/ports.ts";
import type {
  AgentFilter,
  AgentListCursor,
  DeletionQuery,
  RequestFilter,
  ScheduleCursor,
  ScheduleFilter,
  TurnFilter,
  TurnListCursor,
} from "../rules/queries.ts";
import {
  type AddedRow,
  type ArtifactMeta,
  type CandidateTables,
  freshHead,
  type Head,
  type KeyMeaning,
  type ProcessRow,
  type RestoredRow,
  type TurnChange,
  type OuterKind,
  type OuterRows,
  type WaiterChanges,
} from "../rules/tables.ts";
import { SqliteOuterRows } from "./sqlite-outer-rows.ts";
import { SqliteAccounts } from "./sqlite-accounts.ts";
import { SqliteAgents } from "./sqlite-agents.ts";
import type { SqliteConnection } from "./sqlite-connection.ts";
import { SqliteDeletions } from "./sqlite-deletions.ts";
import type { AgentSlot } from "./sqlite-heads.ts";
import { SqliteJournal } from "./sqlite-journal.ts";
import { SqliteMessages } from "./sqlite-messages.ts";
import { SqliteCandidates, SqliteInbox, SqlitePending } from "./sqlite-pending.ts";
import {
  SqliteArtifacts,
  SqliteDefinitions,
  SqliteProjections,
  SqliteRequests,
  SqliteWebhooks,
} from "./sqlite-small-tables.ts";
import { SqliteSchedules } from "./sqlite-schedules.ts";
import { SqliteSteers } from "./sqlite-steers.ts";
import { SqliteTurns } from "./sqlite-turns.ts";

/** The tables in the file. Each kind of row has its own class; this one resolves tenant and agent id to the integer key. */
export class SqliteTables implements CandidateTables {
  readonly #connection: SqliteConnection;
  readonly #agents: SqliteAgents;
  readonly #accounts: SqliteAccounts;
  readonly #outer: SqliteOuterRows;
  readonly #inbox: SqliteInbox;
  readonly #messages: SqliteMessages;
  readonly #journal: SqliteJournal;
  readonly #artifacts: SqliteArtifacts;
  readonly #pending: SqlitePending;
  readonly #requests: SqliteRequests;
  readonly #turns: SqliteTurns;
  readonly #steers: SqliteSteers;
  readonly #projections: SqliteProjections;
  readonly #webhooks: SqliteWebhooks;
  readonly #schedules: SqliteSchedules;
  readonly #definitions: SqliteDefinitions;
  readonly #deletions: SqliteDeletions;
  readonly #candidates: SqliteCandidates;

  constructor(connection: SqliteConnection) {
    this.#connection = connection;
    this.#agents = new SqliteAgents(connection);
    this.#accounts = new SqliteAccounts(connection);
    this.#outer = new SqliteOuterRows(connection);
    this.#inbox = new SqliteInbox(connection);
    this.#messages = new SqliteMessages(connection);
    this.#journal = new SqliteJournal(connection, this.#messages);
    this.#artifacts = new SqliteArtifacts(connection);
    this.#pending = new SqlitePending(connection);
    this.#requests = new SqliteRequests(connection);
    this.#turns = new SqliteTurns(connection);
    this.#steers = new SqliteSteers(connection);
    this.#projections = new SqliteProjections(connection);
    this.#webhooks = new SqliteWebhooks(connection);
    this.#schedules = new SqliteSchedules(connection);
    this.#definitions = new SqliteDefinitions(connection);
    this.#deletions = new SqliteDeletions(connection);
    this.#candidates = new SqliteCandidates(connection);
  }

  /** Drops the cached data of these agents' trees; it is read again when it is needed. */
  rest(keys: readonly AgentKey[]): void {
    for (const rows of [this.#agents, this.#accounts, this.#inbox]) rows.rest(keys);
  }

  agent(key: AgentKey): AgentRecord | undefined {
    return this.#agents.find(key)?.record.value;
  }

  putAgent(record: AgentRecord): void {
    this.#agents.put(record);
  }

  childrenOf(key: AgentKey): AgentRecord[] {
    return this.#agents.childrenOf(key);
  }

  listAgents(filter: AgentFilter, limit: number, place?: AgentListCursor): AgentRecord[] {
    return this.#agents.list(filter, limit, place);
  }

  head(key: AgentKey): Head {
    const slot = this.#agents.find(key);
    return slot ? this.#agents.heads.read(slot) : freshHead;
  }

  putHead(key: AgentKey, head: Head, outcome?: Committed): void {
    this.#agents.heads.put(this.#agents.required(key), head, outcome);
  }

  lastOutcome(key: AgentKey): Committed | undefined {
    const slot = this.#agents.find(key);
    if (!slot) return undefined;
    const { hasRow, ...rest } = this.#agents.heads.outcome(slot);
    const { cursor, entries } = hasRow ? this.#journal.lastRow(slot) : { cursor: 0, entries: [] };
    return { type: "committed", entries, cursor, ...rest };
  }

  account(tenant: string, accountId: string): Account | undefined {
    return this.#accounts.find(tenant, accountId);
  }

  putAccount(tenant: string, rootAgentId: string, account: Account): void {
    this.#accounts.put(tenant, () => this.#agents.rootFor(tenant, rootAgentId), account);
  }

  waiters(tenant: string, account: Account): readonly Waiter[] {
    return this.#accounts.waiters(tenant, account);
  }

  putWaiters(tenant: string, rootAgentId: string, change: WaiterChanges): void {
    this.#accounts.putWaiters(tenant, () => this.#agents.rootFor(tenant, rootAgentId), change);
  }

  outerRow<Kind extends OuterKind>(tenant: string, kind: Kind, id: string): OuterRows[Kind] | undefined {
    return this.#outer.find(tenant, kind, id);
  }

  putOuterRow<Kind extends OuterKind>(tenant: string, kind: Kind, id: string, row: OuterRows[Kind]): void {
    this.#outer.put(tenant, kind, id, row);
  }

  removeOuterRow(tenant: string, kind: OuterKind, id: string): void {
    this.#outer.remove(tenant, kind, id);
  }

  outerIds(tenant: string, kind: OuterKind, after: string | undefined, limit: number): string[] {
    return this.#outer.ids(tenant, kind, after, limit);
  }

  outerRows<Kind extends OuterKind>(
    tenant: string,
    kind: Kind,
    after: string | undefined,
    limit: number,
  ): OuterRows[Kind][] {
    const rows = this.outerIds(tenant, kind, after, limit).map((id) => this.outerRow(tenant, kind, id));
    return rows.filter((row) => row !== undefined);
  }

  accounts(tenant: string, rootAgentId: string): Account[] {
    const root = this.#agents.rootOf(tenant, rootAgentId);
    return root === undefined ? [] : this.#accounts.ofTree(root);
  }

  addToInbox(key: AgentKey, item: InboxItem): boolean {
    return this.#inbox.add(this.#agents.required(key), item);
  }

  inbox(key: AgentKey): InboxItem[] {
    return this.#ofAgent(key, (slot) => this.#inbox.items(slot), []);
  }

  inboxSize(key: AgentKey): number {
    return this.#ofAgent(key, (slot) => this.#inbox.size(slot), 0);
  }

  removeFromInbox(key: AgentKey, itemKeys: readonly string[]): void {
    if (itemKeys.length > 0) this.#inbox.remove(this.#agents.required(key), itemKeys);
  }

  addRow(key: AgentKey, entries: readonly Entry[], messages: readonly Message[]): AddedRow {
    return this.#journal.add(this.#agents.required(key), entries, messages);
  }

  rowsFrom(key: AgentKey, fromSeq: number): JournalRow[] {
    return this.#ofAgent(key, (slot) => this.#journal.rowsFrom(slot, fromSeq), []);
  }

  treeRows(tenant: string, rootAgentId: string, afterCursor: number, limit: number): JournalRow[] {
    const root = this.#agents.rootOf(tenant, rootAgentId);
    return root === undefined ? [] : this.#journal.treeRows(root, afterCursor, limit);
  }

  lastCursor(tenant: string, rootAgentId: string): number {
    const root = this.#agents.rootOf(tenant, rootAgentId);
    return root === undefined ? 0 : this.#journal.lastCursor(root);
  }

  messages(key: AgentKey, newest: number | undefined): Message[] {
    return this.#ofAgent(key, (slot) => this.#messages.newest(slot, newest), []);
  }

  messagesById(key: AgentKey, ids: readonly string[]): Message[] {
    return this.#ofAgent(key, (slot) => this.#messages.byId(slot, ids), []);
  }

  clearMessages(key: AgentKey): void {
    this.#messages.clear(this.#agents.required(key));
  }

  putArtifact(key: AgentKey, artifact: Artifact): void {
    this.#artifacts.put(this.#agents.required(key), artifact);
  }

  artifactMeta(key: AgentKey, artifactId: string): ArtifactMeta | undefined {
    return this.#ofAgent(key, (slot) => this.#artifacts.describe(slot, artifactId), undefined);
  }

  newestVersion(key: AgentKey, name: string): number {
    return this.#ofAgent(key, (slot) => this.#artifacts.newestVersion(slot, name), 0);
  }

  clearArtifacts(key: AgentKey): void {
    this.#artifacts.clear(this.#agents.required(key));
  }

  artifacts(key: AgentKey): ArtifactMeta[] {
    return this.#ofAgent(key, (slot) => this.#artifacts.all(slot), []);
  }

  artifact(key: AgentKey, artifactId: string): Artifact | undefined {
    return this.#ofAgent(key, (slot) => this.#artifacts.find(slot, artifactId), undefined);
  }

  artifactByName(key: AgentKey, name: string, version = this.newestVersion(key, name)): Artifact | undefined {
    return this.#ofAgent(key, (slot) => this.#artifacts.findByName(slot, name, version), undefined);
  }

  request(key: AgentKey, requestId: string): AgentRequest | undefined {
    return this.#ofAgent(key, (slot) => this.#requests.find(slot, requestId), undefined);
  }

  putRequest(request: AgentRequest): void {
    this.#requests.put(this.#agents.required(request), request);
  }

  openRequestsOf(key: AgentKey, turnId: string): AgentRequest[] {
    return this.#ofAgent(key, (slot) => this.#requests.openOf(slot, turnId), []);
  }

  requests(filter: RequestFilter, after: AgentRequest | undefined, limit: number): AgentRequest[] {
    const { tenant, agentId, rootAgentId } = filter;
    const agent = agentId === undefined ? undefined : (this.#agents.find({ tenant, agentId })?.id ?? null);
    const root = rootAgentId === undefined ? undefined : (this.#agents.rootOf(tenant, rootAgentId) ?? null);
    return this.#requests.list(filter, { agent, root }, after, limit);
  }

  putTurn(turn: StoredTurn): void {
    this.#turns.put(this.#agents.required(turn), turn);
  }

  moveTurn(key: AgentKey, turnId: string, change: TurnChange): void {
    this.#turns.move(this.#agents.required(key), turnId, change);
  }

  putSteer(key: AgentKey, steerId: string, meaning: SteerMeaning): void {
    this.#steers.put(this.#agents.required(key), steerId, meaning);
  }

  meaningOf(root: AgentKey, text: string): KeyMeaning | undefined {
    const slot = this.#agents.find(root);
    const turn = slot && this.#turns.ofKey(slot, text);
    if (turn) return turn;
    const { requestId, decidedWith } = (slot && this.#requests.ofKey(slot, text)) ?? {};
    if (requestId !== undefined && decidedWith) return { requestId, turnId: decidedWith.turnId };
    return slot && this.#steers.find(slot, text);
  }

  turns(filter: TurnFilter, limit: number, place?: TurnListCursor): TurnRecord[] {
    const { tenant, agentId } = filter;
    const agent = agentId === undefined ? undefined : (this.#agents.find({ tenant, agentId })?.id ?? null);
    return this.#turns.list(filter, agent, limit, place);
  }

  turnsOf(key: AgentKey): StoredTurn[] {
    return this.#ofAgent(key, (slot) => this.#turns.ofAgent(slot), []);
  }

  keepDefinition(tenant: string, rootAgentId: string, definition: StoredDefinition): void {
    this.#definitions.keep(tenant, this.#agents.rootFor(tenant, rootAgentId), definition);
  }

  definition(tenant: string, rootAgentId: string, hash: string): StoredDefinition | undefined {
    const root = this.#agents.rootOf(tenant, rootAgentId);
    return root === undefined ? undefined : this.#definitions.find(tenant, root, hash);
  }

  definitionsOf(tenant: string, rootAgentId: string): StoredDefinition[] {
    const root = this.#agents.rootOf(tenant, rootAgentId);
    return root === undefined ? [] : this.#definitions.ofTree(tenant, root);
  }

  setTimer(timer: Timer): void {
    this.#pending.setTimer(this.#agents.required(timer), timer);
  }

  clearTimer(key: AgentKey, timerId: string): void {
    this.#ofAgent(key, (slot) => this.#pending.clearTimer(slot, timerId), undefined);
  }

  timersOf(key: AgentKey): Timer[] {
    return this.#ofAgent(key, (slot) => this.#pending.timers(slot), []);
  }

  dueTimers(moment: Moment, limit: number): Timer[] {
    return this.#pending.dueTimers(moment, limit);
  }

  timer(key: AgentKey, timerId: string): Timer | undefined {
    return this.#ofAgent(key, (slot) => this.#pending.timer(slot, timerId), undefined);
  }

  nextTimerAt(): number | undefined {
    return this.#pending.nextTimerAt();
  }

  process(processId: string): ProcessRow | undefined {
    return this.#pending.process(processId);
  }

  processes(): ProcessRow[] {
    return this.#pending.processes();
  }

  putProcess(row: ProcessRow): void {
    this.#pending.putProcess(row);
  }

  removeProcess(processId: string): void {
    this.#pending.removeProcess(processId);
  }

  /** In the order in which they were created. */
  unattendedCandidates(
    tenant: string,
    isLiving: (processId: string) => boolean,
    after: string | undefined,
    limit: number,
  ): Iterable<AgentKey> {
    const start = after === undefined ? 0 : (this.#agents.find({ tenant, agentId: after })?.id ?? 0);
    return this.#candidates.after(tenant, isLiving, start, Math.max(1, limit));
  }

  agentsOfTree(tenant: string, rootAgentId: string): AgentRecord[] {
    const root = this.#agents.rootOf(tenant, rootAgentId);
    return root === undefined ? [] : this.#agents.ofTree(root);
  }

  storedRows(tenant: string, rootAgentId: string): StoredRow[] {
    const root = this.#agents.rootOf(tenant, rootAgentId);
    return root === undefined ? [] : this.#journal.storedRows(root);
  }

  removeTree(tenant: string, rootAgentId: string): void {
    const root = this.#agents.rootOf(tenant, rootAgentId);
    if (root === undefined) return;
    this.#accounts.removeTree(root);
    this.#journal.removeTree(root);
    this.#agents.removeTree(root);
    this.#connection.invalidate();
  }

  purgeTree(tenant: string, rootAgentId: string): void {
    const keys = this.agentsOfTree(tenant, rootAgentId);
    const root = this.#agents.rootOf(tenant, rootAgentId);
    if (root !== undefined) this.#definitions.forgetTree(tenant, root);
    this.removeTree(tenant, rootAgentId);
    this.#projections.removeTree(tenant, rootAgentId);
    this.removeWebhooks(tenant, rootAgentId);
    this.rest(keys);
  }

  deletion(tenant: string, idHash: string): Deletion | undefined {
    return this.#deletions.find(tenant, idHash);
  }

  putDeletion(deletion: Deletion): void {
    this.#deletions.put(deletion);
  }

  removeDeletion(tenant: string, idHash: string): void {
    this.#deletions.remove(tenant, idHash);
  }

  deletions(query: DeletionQuery & { readonly limit: number }): Deletion[] {
    return this.#deletions.list(query);
  }

  restoreRows(tenant: string, rows: readonly RestoredRow[]): number[] {
    return this.#journal.restore(
      rows.map(({ row, cursor }) => ({ row, cursor, slot: this.#agents.required({ tenant, agentId: row.agentId }) })),
    );
  }

  projections(tenant: string, rootAgentId: string): StoredTree["projections"] {
    return this.#projections.ofTree(tenant, rootAgentId);
  }

  projectionCursor(tenant: string, name: string, rootAgentId: string): number {
    return this.#projections.cursor(tenant, name, rootAgentId);
  }

  moveProjection(tenant: string, name: string, rootAgentId: string, cursor: number): void {
    this.#projections.move(tenant, name, rootAgentId, cursor);
  }

  webhooks(tenant: string, rootAgentId: string): TreeWebhooks | undefined {
    return this.#webhooks.find(tenant, rootAgentId);
  }

  putWebhooks(webhooks: TreeWebhooks): void {
    this.#webhooks.put(webhooks);
  }

  removeWebhooks(tenant: string, rootAgentId: string): void {
    this.#webhooks.remove(tenant, rootAgentId);
  }

  dueWebhooks(tenant: string, now: number, limit: number): TreeWebhooks[] {
    return this.#webhooks.due(tenant, now, limit);
  }

  schedule(tenant: string, key: string): Schedule | undefined {
    return this.#schedules.find(tenant, key);
  }

  putSchedule(schedule: Schedule): void {
    this.#schedules.put(schedule);
  }

  removeSchedule(tenant: string, key: string): void {
    this.#schedules.remove(tenant, key);
  }

  schedules(filter: ScheduleFilter, limit: number): Schedule[] {
    return this.#schedules.list(filter, limit);
  }

  dueSchedules(tenant: string, now: number, limit: number, place?: ScheduleCursor): Schedule[] {
    return this.#schedules.due(tenant, now, limit, place);
  }

  nextScheduleAt(tenant: string, after: number): number | undefined {
    return this.#schedules.nextAt(tenant, after);
  }

  #ofAgent<T>(key: AgentKey, ask: (slot: AgentSlot) => T, none: T): T {
    const slot = this.#agents.find(key);
    return slot ? ask(slot) : none;
  }
}
