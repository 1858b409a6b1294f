import type { Account, Moment } from "../../budget/index.ts";
import {
  type AgentKey,
  type AgentRecord,
  type AgentRequest,
  type Artifact,
  type Deletion,
  type InboxItem,
  type JournalRow,
  type Message,
  type Schedule,
  scheduleDueAt,
  type StoredDefinition,
  type Timer,
  type TreeWebhooks,
  type TurnRecord,
} from "../../state/index.ts";
import type { StoredRow, StoredTree, StoredTurn } from "../rules/ports.ts";
import {
  type AgentFilter,
  type AgentListCursor,
  byAge,
  byChange,
  type DeletionQuery,
  isRequestOf,
  isScheduleOf,
  isTurnOf,
  type RequestFilter,
  type ScheduleCursor,
  type ScheduleFilter,
  type TurnFilter,
  type TurnListCursor,
} from "../rules/queries.ts";
import type { ArtifactMeta, CandidateTables, RestoredRow } from "../rules/tables.ts";
import { emptyTree } from "./memory-rows.ts";
import { MemoryTables } from "./memory-tables.ts";

/** Reads outside of commits, and export and import of trees. */
export class MemoryReads extends MemoryTables implements CandidateTables {
  listAgents(filter: AgentFilter, limit: number, place?: AgentListCursor): AgentRecord[] {
    const { after, rootAgentId, sessionId, ownerId, rootsOnly, order } = filter;
    const isNewest = order === "newest";
    const found: AgentRecord[] = [];
    for (const { record } of this.rows.tenants.get(filter.tenant)?.agents.values() ?? []) {
      const { agentId } = record;
      if (!isNewest && after !== undefined && agentId <= after) continue;
      if (place !== undefined && byAge(place, record) >= 0) continue;
      if (rootAgentId !== undefined && record.rootAgentId !== rootAgentId) continue;
      if (sessionId !== undefined && record.sessionId !== sessionId) continue;
      if (ownerId !== undefined && record.ownerId !== ownerId) continue;
      if (rootsOnly && record.parentAgentId !== null) continue;
      found.push(record);
    }
    return found.sort(isNewest ? byAge : (a, b) => (a.agentId < b.agentId ? -1 : 1)).slice(0, limit);
  }

  /** Whether the agent's inbox has an item. */
  isPosted(key: AgentKey): boolean {
    return this.inboxSize(key) > 0;
  }

  inbox(key: AgentKey): InboxItem[] {
    return [...(this.find(key)?.inbox?.values() ?? [])].map((row) => row.item);
  }

  rowsFrom(key: AgentKey, fromSeq: number): JournalRow[] {
    const journal = this.find(key)?.journal ?? [];
    const start = journal.findLastIndex((row) => (row.entries.at(-1)?.seq ?? 0) < fromSeq) + 1;
    return journal.slice(start);
  }

  treeRows(tenant: string, rootAgentId: string, afterCursor: number, limit: number): JournalRow[] {
    const journal = this.treeOf(tenant, rootAgentId)?.journal ?? [];
    const start = firstAfter(journal, afterCursor);
    return journal.slice(start, start + limit);
  }

  lastCursor(tenant: string, rootAgentId: string): number {
    return this.treeOf(tenant, rootAgentId)?.journal.at(-1)?.cursor ?? 0;
  }

  messages(key: AgentKey, newest: number | undefined): Message[] {
    const messages = this.find(key)?.messages ?? [];
    return newest === undefined ? [...messages] : messages.slice(Math.max(0, messages.length - newest));
  }

  messagesById(key: AgentKey, ids: readonly string[]): Message[] {
    const byId = this.find(key)?.messagesById;
    return ids.flatMap((id) => byId?.get(id)?.message ?? []);
  }

  artifacts(key: AgentKey): ArtifactMeta[] {
    const artifacts = [...(this.find(key)?.artifacts?.values() ?? [])];
    return artifacts.map(({ content: _content, ...meta }) => meta);
  }

  artifact(key: AgentKey, artifactId: string): Artifact | undefined {
    return this.find(key)?.artifacts?.get(artifactId);
  }

  artifactByName(key: AgentKey, name: string, version: number | undefined): Artifact | undefined {
    const wanted = version ?? this.newestVersion(key, name);
    const artifacts = [...(this.find(key)?.artifacts?.values() ?? [])];
    return artifacts.find((artifact) => artifact.name === name && artifact.version === wanted);
  }

  requests(filter: RequestFilter, after: AgentRequest | undefined, limit: number): AgentRequest[] {
    const found: AgentRequest[] = [];
    for (const { record, requests } of this.rows.tenants.get(filter.tenant)?.agents.values() ?? []) {
      if (filter.agentId !== undefined && record.agentId !== filter.agentId) continue;
      for (const request of requests?.values() ?? []) {
        if (isRequestOf(filter, request) && (after === undefined || byOpening(after, request) < 0)) found.push(request);
      }
    }
    return found.sort(byOpening).slice(0, limit);
  }

  turns(filter: TurnFilter, limit: number, place?: TurnListCursor): TurnRecord[] {
    const found: StoredTurn[] = [];
    for (const { turns } of this.rows.tenants.get(filter.tenant)?.agents.values() ?? []) {
      for (const turn of turns?.values() ?? []) {
        if (isTurnOf(filter, turn) && (place === undefined || byChange(place, turn) < 0)) found.push(turn);
      }
    }
    const page = found.sort(byChange).slice(0, limit);
    return page.map(({ hash: _hash, ...turn }) => turn);
  }

  turnsOf(key: AgentKey): StoredTurn[] {
    return [...(this.find(key)?.turns?.values() ?? [])].sort((a, b) => a.number - b.number);
  }

  /** In the order of agent ids. */
  unattendedCandidates(
    tenant: string,
    isLiving: (processId: string) => boolean,
    after: string | undefined,
  ): AgentKey[] {
    const found: AgentKey[] = [];
    for (const [agentId, { head }] of this.rows.tenants.get(tenant)?.candidates ?? []) {
      if (after !== undefined && agentId <= after) continue;
      if (head.holder === null || !isLiving(head.holder)) found.push({ tenant, agentId });
    }
    return found.sort((one, other) => (one.agentId < other.agentId ? -1 : 1));
  }

  accounts(tenant: string, rootAgentId: string): Account[] {
    return [...(this.treeOf(tenant, rootAgentId)?.accounts?.values() ?? [])];
  }

  definition(tenant: string, rootAgentId: string, hash: string): StoredDefinition | undefined {
    return this.treeOf(tenant, rootAgentId)?.definitions.get(hash);
  }

  definitionsOf(tenant: string, rootAgentId: string): StoredDefinition[] {
    const definitions = this.treeOf(tenant, rootAgentId)?.definitions.values() ?? [];
    return [...definitions].sort((one, other) => (one.hash < other.hash ? -1 : 1));
  }

  dueTimers(moment: Moment, limit: number): Timer[] {
    return this.timers.due(moment, limit);
  }

  nextTimerAt(): number | undefined {
    return this.timers.nextAt();
  }

  timer(key: AgentKey, timerId: string): Timer | undefined {
    return this.find(key)?.timers?.get(timerId);
  }

  agentsOfTree(tenant: string, rootAgentId: string): AgentRecord[] {
    return (this.treeOf(tenant, rootAgentId)?.agents ?? []).map(({ record }) => record);
  }

  timersOf(key: AgentKey): Timer[] {
    const timers = [...(this.find(key)?.timers?.values() ?? [])];
    return timers.sort((a, b) => a.dueAt - b.dueAt || (a.id < b.id ? -1 : 1));
  }

  storedRows(tenant: string, rootAgentId: string): StoredRow[] {
    const messages = new Map<number, Message[]>();
    for (const { messagesById } of this.treeOf(tenant, rootAgentId)?.agents ?? []) {
      for (const { cursor, message } of messagesById?.values() ?? []) {
        const ofRow = messages.get(cursor);
        if (ofRow) ofRow.push(message);
        else messages.set(cursor, [message]);
      }
    }
    const journal = this.treeOf(tenant, rootAgentId)?.journal ?? [];
    return journal.map((row) => ({ ...row, messages: messages.get(row.cursor) ?? [] }));
  }

  removeTree(tenant: string, rootAgentId: string): void {
    const rows = this.rows.tenants.get(tenant);
    const tree = this.treeOf(tenant, rootAgentId);
    if (!rows || !tree) return;
    const { agents } = tree;
    for (const agent of agents) {
      for (const timerId of agent.timers?.keys() ?? []) this.timers.clear(agent, timerId);
    }
    const agentIds = agents.map(({ record }) => record.agentId);
    this.undo.removeAll(rows.agents, agentIds);
    this.undo.removeAll(rows.candidates, agentIds);
    this.undo.removeAll(rows.treesOfAccounts, tree.accounts?.keys() ?? []);
    this.undo.set(rows.trees, rootAgentId, emptyTree(tree.lastCursor));
  }

  purgeTree(tenant: string, rootAgentId: string): void {
    const rows = this.rows.tenants.get(tenant);
    if (!rows) return;
    this.removeTree(tenant, rootAgentId);
    this.undo.removeAll(rows.trees, [rootAgentId]);
    this.undo.removeAll(rows.projections, [rootAgentId]);
    this.removeWebhooks(tenant, rootAgentId);
  }

  putDeletion(deletion: Deletion): void {
    this.undo.set(this.tenantRows(deletion.tenant).deletions, deletion.idHash, deletion);
  }

  removeDeletion(tenant: string, idHash: string): void {
    this.undo.removeAll(this.tenantRows(tenant).deletions, [idHash]);
  }

  deletions({ tenant, since, isPending, limit }: DeletionQuery & { readonly limit: number }): Deletion[] {
    const found = [...(this.rows.tenants.get(tenant)?.deletions.values() ?? [])].filter(
      ({ deletedAt, pending }) =>
        (since === undefined || deletedAt >= since) && (isPending !== true || pending !== undefined),
    );
    return found.sort((a, b) => a.deletedAt - b.deletedAt || (a.idHash < b.idHash ? -1 : 1)).slice(0, limit);
  }

  restoreRows(tenant: string, restored: readonly RestoredRow[]): number[] {
    return restored.map(({ row: { agentId, entries, messages }, cursor }) => {
      const key = { tenant, agentId };
      if (cursor === undefined) return this.addRow(key, entries, messages).cursor;
      this.addRowAt(key, cursor, entries, messages);
      return cursor;
    });
  }

  projections(tenant: string, rootAgentId: string): StoredTree["projections"] {
    const cursors = this.rows.tenants.get(tenant)?.projections.get(rootAgentId) ?? [];
    return [...cursors].map(([name, cursor]) => ({ name, cursor }));
  }

  projectionCursor(tenant: string, name: string, rootAgentId: string): number {
    return this.rows.tenants.get(tenant)?.projections.get(rootAgentId)?.get(name) ?? 0;
  }

  moveProjection(tenant: string, name: string, rootAgentId: string, cursor: number): void {
    if (cursor <= this.projectionCursor(tenant, name, rootAgentId)) return;
    const { projections } = this.tenantRows(tenant);
    const cursors = projections.get(rootAgentId) ?? new Map<string, number>();
    this.undo.set(projections, rootAgentId, cursors);
    this.undo.set(cursors, name, cursor);
  }

  webhooks(tenant: string, rootAgentId: string): TreeWebhooks | undefined {
    return this.rows.tenants.get(tenant)?.webhooks.get(rootAgentId);
  }

  putWebhooks(webhooks: TreeWebhooks): void {
    this.undo.set(this.tenantRows(webhooks.tenant).webhooks, webhooks.rootAgentId, webhooks);
  }

  removeWebhooks(tenant: string, rootAgentId: string): void {
    this.undo.removeAll(this.tenantRows(tenant).webhooks, [rootAgentId]);
  }

  dueWebhooks(tenant: string, now: number, limit: number): TreeWebhooks[] {
    const due = [...(this.rows.tenants.get(tenant)?.webhooks.values() ?? [])].filter(({ dueAt }) => dueAt <= now);
    return due.sort((one, other) => one.dueAt - other.dueAt).slice(0, limit);
  }

  schedule(tenant: string, key: string): Schedule | undefined {
    return this.rows.tenants.get(tenant)?.schedules.get(key);
  }

  putSchedule(schedule: Schedule): void {
    this.undo.set(this.tenantRows(schedule.tenant).schedules, schedule.key, schedule);
  }

  removeSchedule(tenant: string, key: string): void {
    this.undo.removeAll(this.tenantRows(tenant).schedules, [key]);
  }

  schedules(filter: ScheduleFilter, limit: number): Schedule[] {
    const { tenant, after } = filter;
    return [...(this.rows.tenants.get(tenant)?.schedules.values() ?? [])]
      .filter((schedule) => (after === undefined || schedule.key > after) && isScheduleOf(filter, schedule))
      .sort((one, other) => (one.key < other.key ? -1 : 1))
      .slice(0, limit);
  }

  dueSchedules(tenant: string, now: number, limit: number, place?: ScheduleCursor): Schedule[] {
    const cursors = this.#scheduleCursors(tenant)
      .filter((cursor) => cursor.dueAt <= now && (!place || byDue(place, cursor) < 0))
      .sort(byDue);
    return cursors.slice(0, limit).flatMap(({ key }) => this.schedule(tenant, key) ?? []);
  }

  nextScheduleAt(tenant: string, after: number): number | undefined {
    const times = this.#scheduleCursors(tenant).flatMap(({ dueAt }) => (dueAt > after ? dueAt : []));
    return times.length === 0 ? undefined : Math.min(...times);
  }

  /** The schedules that are due some time. */
  #scheduleCursors(tenant: string): ScheduleCursor[] {
    return [...(this.rows.tenants.get(tenant)?.schedules.values() ?? [])].flatMap((schedule) => {
      const dueAt = scheduleDueAt(schedule);
      return dueAt === null ? [] : { dueAt, key: schedule.key };
    });
  }
}

function byDue(one: ScheduleCursor, other: ScheduleCursor): number {
  return one.dueAt - other.dueAt || (one.key < other.key ? -1 : Number(one.key > other.key));
}

/** The index of the first row whose cursor is above `cursor`. */
function firstAfter(journal: readonly JournalRow[], cursor: number): number {
  let low = 0;
  let high = journal.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((journal[middle]?.cursor ?? 0) > cursor) high = middle;
    else low = middle + 1;
  }
  return low;
}

function byOpening(one: AgentRequest, other: AgentRequest): number {
  if (one.openedAt !== other.openedAt) return one.openedAt - other.openedAt;
  if (one.requestId === other.requestId) return 0;
  return one.requestId < other.requestId ? -1 : 1;
}
