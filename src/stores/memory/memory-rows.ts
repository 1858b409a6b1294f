import type { Account, Moment, Waiter } from "../../budget/index.ts";
import type {
  AgentRecord,
  AgentRequest,
  Artifact,
  Deletion,
  InboxItem,
  JournalRow,
  Message,
  StoredDefinition,
  Timer,
  Schedule,
  TreeWebhooks,
} from "../../state/index.ts";
import type { Committed } from "../rules/outcomes.ts";
import type { StoredTurn } from "../rules/ports.ts";
import { isDue } from "../rules/queries.ts";
import {
  freshHead,
  type Head,
  type KeyMeaning,
  type OuterKind,
  type OuterRows,
  type ProcessRow,
} from "../rules/tables.ts";
import type { UndoLog } from "../rules/undo-log.ts";

/** An item and its position in the order of arrival. */
interface InboxRow {
  readonly ordinal: number;
  readonly item: InboxItem;
}

/** A message and the cursor of its journal row. */
interface PlacedMessage {
  readonly cursor: number;
  readonly message: Message;
}

/**
 * All rows of one agent. Lists only grow; maps keep the order of insertion. Most maps of most agents stay empty, and each takes 180
 * bytes, so they are created on the first write (`mapOf`).
 */
export interface AgentRows {
  record: AgentRecord;
  head: Head;
  /** The outcome of the last applied batch. */
  outcome: Committed | undefined;
  readonly tree: TreeRows;
  inbox: Map<string, InboxRow> | undefined;
  nextOrdinal: number;
  readonly journal: JournalRow[];
  /** In order; clearing the conversation replaces both. */
  messages: Message[];
  messagesById: Map<string, PlacedMessage> | undefined;
  artifacts: Map<string, Artifact> | undefined;
  requests: Map<string, AgentRequest> | undefined;
  /** By id. */
  turns: Map<string, StoredTurn> | undefined;
  /** The meanings of callers' keys and the inputs for open turns. */
  keys: Map<string, KeyMeaning> | undefined;
  timers: Map<string, Timer> | undefined;
  readonly children: AgentRows[];
}

type MapName = "inbox" | "messagesById" | "artifacts" | "requests" | "turns" | "keys" | "timers";

/** Returns a map to write to. Creating it is not undone, because an empty map changes nothing. */
export function mapOf<Name extends MapName>(rows: AgentRows, name: Name): NonNullable<AgentRows[Name]> {
  return (rows[name] ??= new Map() as AgentRows[Name]) as NonNullable<AgentRows[Name]>;
}

/** The rows that all agents of one tree share. */
export interface TreeRows {
  /** In the order in which they were created. */
  readonly agents: AgentRows[];
  /** In the order of their cursors. */
  readonly journal: JournalRow[];
  /** The highest cursor that was ever assigned. */
  lastCursor: number;
  /** Created with the first account; `queues` is created with the first waiter. */
  accounts: Map<string, Account> | undefined;
  /** The waiters of each top account. */
  queues: Map<string, readonly Waiter[]> | undefined;
  /** By hash. */
  readonly definitions: Map<string, StoredDefinition>;
}

/** Each tenant has its own maps, so that keys cannot collide. */
export interface TenantRows {
  readonly agents: Map<string, AgentRows>;
  /** Agents that have an inbox item or open work. */
  readonly candidates: Map<string, AgentRows>;
  readonly trees: Map<string, TreeRows>;
  /** The tree that contains each account. */
  readonly treesOfAccounts: Map<string, TreeRows>;
  /** Cursors of projections, by root agent and name. */
  readonly projections: Map<string, Map<string, number>>;
  /** By root agent. */
  readonly webhooks: Map<string, TreeWebhooks>;
  /** The rows above the roots, by kind and id. */
  readonly outer: { readonly [Kind in OuterKind]: Map<string, OuterRows[Kind]> };
  /** By key. */
  readonly schedules: Map<string, Schedule>;
  /** By the hash of the root agent's id. */
  readonly deletions: Map<string, Deletion>;
}

export interface MemoryRows {
  readonly tenants: Map<string, TenantRows>;
  readonly processes: Map<string, ProcessRow>;
}

export function emptyRows(): MemoryRows {
  return { tenants: new Map(), processes: new Map() };
}

export function emptyTenant(): TenantRows {
  return {
    agents: new Map(),
    candidates: new Map(),
    trees: new Map(),
    treesOfAccounts: new Map(),
    projections: new Map(),
    webhooks: new Map(),
    outer: { account: new Map(), hold: new Map(), waiters: new Map() },
    schedules: new Map(),
    deletions: new Map(),
  };
}

export function emptyTree(lastCursor = 0): TreeRows {
  return { agents: [], journal: [], lastCursor, accounts: undefined, queues: undefined, definitions: new Map() };
}

export function emptyAgent(record: AgentRecord, tree: TreeRows): AgentRows {
  return {
    record,
    head: freshHead,
    outcome: undefined,
    tree,
    inbox: undefined,
    nextOrdinal: 0,
    journal: [],
    messages: [],
    messagesById: undefined,
    artifacts: undefined,
    requests: undefined,
    turns: undefined,
    keys: undefined,
    timers: undefined,
    children: [],
  };
}

/** `false` if the inbox already contains an item with that key. */
export function addItem(undo: UndoLog, rows: AgentRows, item: InboxItem): boolean {
  const inbox = mapOf(rows, "inbox");
  if (inbox.has(item.key)) return false;
  undo.set(inbox, item.key, { ordinal: rows.nextOrdinal, item });
  rows.nextOrdinal += 1;
  return true;
}

export function removeItems(undo: UndoLog, rows: AgentRows, itemKeys: readonly string[]): void {
  const { inbox } = rows;
  for (const itemKey of itemKeys) {
    const row = inbox?.get(itemKey);
    if (!inbox || !row) continue;
    undo.note(() => {
      const before = [...inbox, [itemKey, row] as const].sort(([, a], [, b]) => a.ordinal - b.ordinal);
      inbox.clear();
      for (const [restored, value] of before) inbox.set(restored, value);
    });
    inbox.delete(itemKey);
  }
  if (inbox?.size !== 0) return;
  undo.note(() => (rows.inbox = inbox));
  rows.inbox = undefined;
}

/** Updates the candidates after a change of the agent's inbox or head. */
export function noteCandidate(undo: UndoLog, { candidates }: TenantRows, rows: AgentRows): void {
  const { agentId } = rows.record;
  const isCandidate = (rows.inbox?.size ?? 0) > 0 || rows.head.work === "open";
  if (isCandidate === candidates.has(agentId)) return;
  if (isCandidate) {
    undo.set(candidates, agentId, rows);
    return;
  }
  undo.note(() => candidates.set(agentId, rows));
  candidates.delete(agentId);
}

/** The timers of all agents, and the time of the next one. */
export class MemoryTimers {
  readonly #all = new Set<Timer>();
  readonly #undo: UndoLog;
  /** Time of the earliest timer, Infinity if there is none; `undefined` if it has to be searched for. */
  #earliest: number | undefined = Number.POSITIVE_INFINITY;

  constructor(undo: UndoLog) {
    this.#undo = undo;
  }

  set(agent: AgentRows, timer: Timer): void {
    this.clear(agent, timer.id);
    this.#undo.set(mapOf(agent, "timers"), timer.id, timer);
    this.#add(timer);
    this.#undo.note(() => this.#remove(timer));
  }

  clear(agent: AgentRows, timerId: string): void {
    const { timers } = agent;
    const timer = timers?.get(timerId);
    if (!timers || !timer) return;
    this.#undo.note(() => {
      timers.set(timerId, timer);
      this.#add(timer);
    });
    timers.delete(timerId);
    this.#remove(timer);
  }

  due(moment: Moment, limit: number): Timer[] {
    if (this.#next() > Math.max(moment.now, moment.steady)) return [];
    const due = [...this.#all].filter((timer) => isDue(timer, moment));
    return due.sort((a, b) => a.dueAt - b.dueAt).slice(0, limit);
  }

  nextAt(): number | undefined {
    const next = this.#next();
    return Number.isFinite(next) ? next : undefined;
  }

  #add(timer: Timer): void {
    this.#all.add(timer);
    if (this.#earliest !== undefined) this.#earliest = Math.min(this.#earliest, timer.dueAt);
  }

  #remove(timer: Timer): void {
    this.#all.delete(timer);
    if (timer.dueAt === this.#earliest) this.#earliest = undefined;
  }

  #next(): number {
    if (this.#earliest === undefined) {
      this.#earliest = Number.POSITIVE_INFINITY;
      for (const { dueAt } of this.#all) this.#earliest = Math.min(this.#earliest, dueAt);
    }
    return this.#earliest;
  }
}
