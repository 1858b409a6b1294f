import type { Account, Waiter } from "../../budget/index.ts";
import { InvariantError } from "../../errors/index.ts";
import {
  type AgentKey,
  type AgentRecord,
  type AgentRequest,
  type Artifact,
  type Deletion,
  type Entry,
  type InboxItem,
  JOURNAL_VERSION,
  type Message,
  type StoredDefinition,
  type Timer,
} from "../../state/index.ts";
import type { Committed, SteerMeaning } from "../rules/outcomes.ts";
import type { StoredTurn } from "../rules/ports.ts";
import {
  type AddedRow,
  type ArtifactMeta,
  freshHead,
  type Head,
  type KeyMeaning,
  type OuterKind,
  type OuterRows,
  type ProcessRow,
  type Tables,
  type TurnChange,
  type WaiterChanges,
} from "../rules/tables.ts";
import type { UndoLog } from "../rules/undo-log.ts";
import {
  addItem,
  type AgentRows,
  emptyAgent,
  emptyRows,
  emptyTenant,
  emptyTree,
  mapOf,
  type MemoryRows,
  MemoryTimers,
  noteCandidate,
  removeItems,
  type TenantRows,
  type TreeRows,
} from "./memory-rows.ts";

/** Rows in maps; every change is recorded in the undo log. Values are immutable, so they are stored without copying. */
export class MemoryTables implements Tables {
  readonly rows: MemoryRows = emptyRows();
  readonly timers: MemoryTimers;
  protected readonly undo: UndoLog;

  constructor(undo: UndoLog) {
    this.undo = undo;
    this.timers = new MemoryTimers(undo);
  }

  find({ tenant, agentId }: AgentKey): AgentRows | undefined {
    return this.rows.tenants.get(tenant)?.agents.get(agentId);
  }

  protected treeOf(tenant: string, rootAgentId: string): TreeRows | undefined {
    return this.rows.tenants.get(tenant)?.trees.get(rootAgentId);
  }

  agent(key: AgentKey): AgentRecord | undefined {
    return this.find(key)?.record;
  }

  putAgent(record: AgentRecord): void {
    const { tenant, agentId, rootAgentId, parentAgentId } = record;
    const known = this.find({ tenant, agentId });
    if (known) {
      const before = known.record;
      this.undo.note(() => (known.record = before));
      known.record = record;
      return;
    }
    const rows = emptyAgent(record, this.#tree(tenant, rootAgentId));
    this.undo.set(this.tenantRows(tenant).agents, agentId, rows);
    this.undo.push(rows.tree.agents, rows);
    const parent = parentAgentId === null ? undefined : this.find({ tenant, agentId: parentAgentId });
    if (parent) this.undo.push(parent.children, rows);
  }

  childrenOf(key: AgentKey): AgentRecord[] {
    return this.find(key)?.children.map((child) => child.record) ?? [];
  }

  head(key: AgentKey): Head {
    return this.find(key)?.head ?? freshHead;
  }

  putHead(key: AgentKey, head: Head, outcome?: Committed): void {
    const rows = this.#require(key);
    const before = rows.head;
    const outcomeBefore = rows.outcome;
    this.undo.note(() => {
      rows.head = before;
      rows.outcome = outcomeBefore;
    });
    rows.head = head;
    if (outcome) rows.outcome = outcome;
    this.#noteCandidate(rows);
  }

  lastOutcome(key: AgentKey): Committed | undefined {
    return this.find(key)?.outcome;
  }

  account(tenant: string, accountId: string): Account | undefined {
    return this.#treeOfAccount(tenant, accountId)?.accounts?.get(accountId);
  }

  #treeOfAccount(tenant: string, accountId: string): TreeRows | undefined {
    return this.rows.tenants.get(tenant)?.treesOfAccounts.get(accountId);
  }

  putAccount(tenant: string, rootAgentId: string, account: Account): void {
    const { treesOfAccounts } = this.tenantRows(tenant);
    let tree = treesOfAccounts.get(account.id);
    if (!tree) {
      tree = this.#tree(tenant, rootAgentId);
      this.undo.set(treesOfAccounts, account.id, tree);
    }
    this.undo.set((tree.accounts ??= new Map()), account.id, account);
  }

  outerRow<Kind extends OuterKind>(tenant: string, kind: Kind, id: string): OuterRows[Kind] | undefined {
    return this.rows.tenants.get(tenant)?.outer[kind].get(id);
  }

  putOuterRow<Kind extends OuterKind>(tenant: string, kind: Kind, id: string, row: OuterRows[Kind]): void {
    this.undo.set(this.#rowsOf(tenant, kind), id, row);
  }

  removeOuterRow(tenant: string, kind: OuterKind, id: string): void {
    const rows: Map<string, unknown> = this.#rowsOf(tenant, kind);
    const before = rows.get(id);
    if (before !== undefined) this.undo.note(() => rows.set(id, before));
    rows.delete(id);
  }

  outerIds(tenant: string, kind: OuterKind, after: string | undefined, limit: number): string[] {
    const rows = this.rows.tenants.get(tenant)?.outer[kind];
    const ids = [...(rows?.keys() ?? [])].filter((id) => after === undefined || id > after);
    return ids.sort().slice(0, limit);
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

  #rowsOf<Kind extends OuterKind>(tenant: string, kind: Kind): Map<string, OuterRows[Kind]> {
    return this.tenantRows(tenant).outer[kind];
  }

  waiters(tenant: string, { id }: Account): readonly Waiter[] {
    return this.#treeOfAccount(tenant, id)?.queues?.get(id) ?? [];
  }

  putWaiters(tenant: string, rootAgentId: string, { account, waiters }: WaiterChanges): void {
    const tree = this.#tree(tenant, rootAgentId);
    this.undo.set((tree.queues ??= new Map()), account.id, waiters);
  }

  addToInbox(key: AgentKey, item: InboxItem): boolean {
    const rows = this.#require(key);
    const isAdded = addItem(this.undo, rows, item);
    this.#noteCandidate(rows);
    return isAdded;
  }

  inboxSize(key: AgentKey): number {
    return this.find(key)?.inbox?.size ?? 0;
  }

  removeFromInbox(key: AgentKey, itemKeys: readonly string[]): void {
    const rows = this.find(key);
    if (!rows || itemKeys.length === 0) return;
    removeItems(this.undo, rows, itemKeys);
    this.#noteCandidate(rows);
  }

  addRow(key: AgentKey, entries: readonly Entry[], messages: readonly Message[]): AddedRow {
    const follows = this.#require(key).tree.lastCursor;
    const cursor = follows + 1;
    this.addRowAt(key, cursor, entries, messages);
    return { cursor, follows };
  }

  /** Appends a row; its cursor must be higher than those of earlier rows. */
  protected addRowAt(key: AgentKey, cursor: number, entries: readonly Entry[], messages: readonly Message[]): void {
    const rows = this.#require(key);
    const { tree } = rows;
    const row = { version: JOURNAL_VERSION, cursor, agentId: key.agentId, entries };
    const { lastCursor } = tree;
    this.undo.note(() => (tree.lastCursor = lastCursor));
    tree.lastCursor = Math.max(lastCursor, cursor);
    this.undo.push(tree.journal, row);
    this.undo.push(rows.journal, row);
    for (const message of messages) {
      const byId = mapOf(rows, "messagesById");
      if (byId.has(message.id)) continue;
      this.undo.set(byId, message.id, { cursor, message });
      this.undo.push(rows.messages, message);
    }
  }

  clearMessages(key: AgentKey): void {
    const rows = this.#require(key);
    const { messages, messagesById } = rows;
    this.undo.note(() => Object.assign(rows, { messages, messagesById }));
    Object.assign(rows, { messages: [], messagesById: undefined });
  }

  putArtifact(key: AgentKey, artifact: Artifact): void {
    this.undo.set(mapOf(this.#require(key), "artifacts"), artifact.artifactId, artifact);
  }

  artifactMeta(key: AgentKey, artifactId: string): ArtifactMeta | undefined {
    return this.find(key)?.artifacts?.get(artifactId);
  }

  newestVersion(key: AgentKey, name: string): number {
    const ofName = [...(this.find(key)?.artifacts?.values() ?? [])].filter((artifact) => artifact.name === name);
    return ofName.reduce((newest, { version }) => Math.max(newest, version), 0);
  }

  clearArtifacts(key: AgentKey): void {
    const rows = this.#require(key);
    const { artifacts } = rows;
    this.undo.note(() => (rows.artifacts = artifacts));
    rows.artifacts = undefined;
  }

  request(key: AgentKey, requestId: string): AgentRequest | undefined {
    return this.find(key)?.requests?.get(requestId);
  }

  putRequest(request: AgentRequest): void {
    const { tenant, requestId, rootAgentId, decidedWith } = request;
    this.undo.set(mapOf(this.#require(request), "requests"), requestId, request);
    if (!decidedWith) return;
    const keys = mapOf(this.#require({ tenant, agentId: rootAgentId }), "keys");
    this.undo.set(keys, decidedWith.key, { requestId, turnId: decidedWith.turnId });
  }

  openRequestsOf(key: AgentKey, turnId: string): AgentRequest[] {
    const requests = [...(this.find(key)?.requests?.values() ?? [])];
    return requests.filter((request) => request.turnId === turnId && request.status === "open");
  }

  putTurn(turn: StoredTurn): void {
    const rows = this.#require(turn);
    const { turnId, key, hash } = turn;
    this.undo.set(mapOf(rows, "turns"), turnId, turn);
    if (key !== null && hash !== null) this.undo.set(mapOf(rows, "keys"), key, { turnId, hash });
  }

  moveTurn(key: AgentKey, turnId: string, change: TurnChange): void {
    const { turns } = this.#require(key);
    const turn = turns?.get(turnId);
    if (turns && turn) this.undo.set(turns, turnId, { ...turn, ...change });
  }

  putSteer(key: AgentKey, steerId: string, meaning: SteerMeaning): void {
    this.undo.set(mapOf(this.#require(key), "keys"), steerId, meaning);
  }

  meaningOf(root: AgentKey, text: string): KeyMeaning | undefined {
    return this.find(root)?.keys?.get(text);
  }

  keepDefinition(tenant: string, rootAgentId: string, definition: StoredDefinition): void {
    const { definitions } = this.#tree(tenant, rootAgentId);
    if (!definitions.has(definition.hash)) this.undo.set(definitions, definition.hash, definition);
  }

  setTimer(timer: Timer): void {
    this.timers.set(this.#require(timer), timer);
  }

  clearTimer(key: AgentKey, timerId: string): void {
    const rows = this.find(key);
    if (rows) this.timers.clear(rows, timerId);
  }

  process(processId: string): ProcessRow | undefined {
    return this.rows.processes.get(processId);
  }

  processes(): ProcessRow[] {
    return [...this.rows.processes.values()];
  }

  putProcess(row: ProcessRow): void {
    this.undo.set(this.rows.processes, row.processId, row);
  }

  removeProcess(processId: string): void {
    this.undo.removeAll(this.rows.processes, [processId]);
  }

  deletion(tenant: string, idHash: string): Deletion | undefined {
    return this.rows.tenants.get(tenant)?.deletions.get(idHash);
  }

  #noteCandidate(rows: AgentRows): void {
    noteCandidate(this.undo, this.tenantRows(rows.record.tenant), rows);
  }

  #require(key: AgentKey): AgentRows {
    const rows = this.find(key);
    if (rows) return rows;
    throw new InvariantError(`cannot write to agent ${key.agentId}: it has no record`);
  }

  protected tenantRows(tenant: string): TenantRows {
    let rows = this.rows.tenants.get(tenant);
    if (!rows) {
      rows = emptyTenant();
      this.undo.set(this.rows.tenants, tenant, rows);
    }
    return rows;
  }

  #tree(tenant: string, rootAgentId: string): TreeRows {
    const known = this.treeOf(tenant, rootAgentId);
    if (known) return known;
    const tree = emptyTree();
    this.undo.set(this.tenantRows(tenant).trees, rootAgentId, tree);
    return tree;
  }
}
