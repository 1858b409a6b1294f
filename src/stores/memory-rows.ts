import type { Account } from "../budget/index.ts";
import type { AgentRecord, Artifact, InboxItem, JournalRow, Message, Timer } from "../state/index.ts";
import type { Committed } from "./outcomes.ts";
import { freshHead, type Head, type ProcessRow } from "./tables.ts";

/** An item and its place in the order of arrival. */
export interface InboxRow {
  readonly ordinal: number;
  readonly item: InboxItem;
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
  readonly messages: Message[];
  readonly messagesById: Map<string, Message>;
  readonly artifacts: Map<string, Artifact>;
  readonly timers: Map<string, Timer>;
  readonly children: AgentRows[];
}

/** What the agents of one tree share. */
export interface TreeRows {
  /** A row's cursor is its place here, from 1. */
  readonly journal: JournalRow[];
  readonly accounts: Map<string, Account>;
}

/** Maps of their own for each tenant, so that no two keys can be mixed up. */
export interface TenantRows {
  readonly agents: Map<string, AgentRows>;
  readonly trees: Map<string, TreeRows>;
  /** The tree that holds each account. */
  readonly treesOfAccounts: Map<string, TreeRows>;
}

export interface MemoryRows {
  readonly tenants: Map<string, TenantRows>;
  readonly processes: Map<string, ProcessRow>;
}

export function emptyRows(): MemoryRows {
  return { tenants: new Map(), processes: new Map() };
}

export function emptyTenant(): TenantRows {
  return { agents: new Map(), trees: new Map(), treesOfAccounts: new Map() };
}

export function emptyTree(): TreeRows {
  return { journal: [], accounts: new Map() };
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
    timers: new Map(),
    children: [],
  };
}
