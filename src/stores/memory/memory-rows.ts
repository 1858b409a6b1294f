import type { Account, Waiter } from "../../budget/index.ts";
import type { AgentRecord, AgentRequest, Artifact, InboxItem, JournalRow, Message, Timer } from "../../state/index.ts";
import type { Committed } from "../rules/outcomes.ts";
import { freshHead, type Head, type ProcessRow } from "../rules/tables.ts";

/** An item and its place in the order of arrival. */
export interface InboxRow {
  readonly ordinal: number;
  readonly item: InboxItem;
}

/** A message and the cursor of the row it came with. */
export interface PlacedMessage {
  readonly cursor: number;
  readonly message: Message;
}

/** All rows of one agent. Lists only grow; maps keep the order of insertion. */
export interface AgentRows {
  record: AgentRecord;
  head: Head;
  /** Of the last applied batch. */
  outcome: Committed | undefined;
  readonly tree: TreeRows;
  readonly inbox: Map<string, InboxRow>;
  nextOrdinal: number;
  readonly journal: JournalRow[];
  /** In order; both are replaced as a whole when the conversation is cleared. */
  messages: Message[];
  messagesById: Map<string, PlacedMessage>;
  artifacts: Map<string, Artifact>;
  readonly requests: Map<string, AgentRequest>;
  readonly timers: Map<string, Timer>;
  readonly children: AgentRows[];
}

/** What the agents of one tree share. */
export interface TreeRows {
  /** In the order of their cursors. */
  readonly journal: JournalRow[];
  /** The highest cursor that was ever given. */
  lastCursor: number;
  readonly accounts: Map<string, Account>;
  /** Those who wait, by the account at the top. */
  readonly lines: Map<string, readonly Waiter[]>;
}

/** Maps of their own for each tenant, so that no two keys can be mixed up. */
export interface TenantRows {
  readonly agents: Map<string, AgentRows>;
  /** Those of them with a post, or with work that is open. */
  readonly restless: Map<string, AgentRows>;
  readonly trees: Map<string, TreeRows>;
  /** The tree that holds each account. */
  readonly treesOfAccounts: Map<string, TreeRows>;
  /** By root agent and name: how far each projection has come. */
  readonly projections: Map<string, Map<string, number>>;
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
    restless: new Map(),
    trees: new Map(),
    treesOfAccounts: new Map(),
    projections: new Map(),
  };
}

export function emptyTree(lastCursor = 0): TreeRows {
  return { journal: [], lastCursor, accounts: new Map(), lines: new Map() };
}

export function emptyAgent(record: AgentRecord, tree: TreeRows): AgentRows {
  return {
    record,
    head: freshHead,
    outcome: undefined,
    tree,
    inbox: new Map(),
    nextOrdinal: 0,
    journal: [],
    messages: [],
    messagesById: new Map(),
    artifacts: new Map(),
    requests: new Map(),
    timers: new Map(),
    children: [],
  };
}
