import type { Account } from "../budget/index.ts";
import type { AgentKey, AgentRecord, Artifact, Entry, InboxItem, Message, Timer } from "../state/index.ts";
import type { Committed, ProcessIdentity } from "./ports.ts";

/** What changes with every commit, kept apart from the record so that a commit stays small. */
export interface Head {
  readonly epoch: number;
  /** Process that holds the lease; null: nobody. */
  readonly holder: string | null;
  readonly seq: number;
  readonly at: number;
  /** The last applied batch and its outcome, for the case that it is sent again. */
  readonly batchId: string | null;
  readonly outcome: Committed | null;
}

export interface ProcessRow extends ProcessIdentity {
  readonly heartbeatAt: number;
}

/**
 * The synchronous rows that commit, commands and leases work on, inside one transaction of an adapter. Adapters whose
 * store is in this process (memory, SQLite) implement this and get the whole protocol; others implement `Stores` itself.
 */
export interface Tables {
  agent(key: AgentKey): AgentRecord | undefined;
  putAgent(record: AgentRecord): void;
  /** Agents whose parent this is. */
  childrenOf(key: AgentKey): AgentRecord[];
  head(key: AgentKey): Head;
  putHead(key: AgentKey, head: Head): void;
  account(tenant: string, accountId: string): Account | undefined;
  putAccount(tenant: string, rootAgentId: string, account: Account): void;
  /** False when an item of that key is there already. */
  addToInbox(key: AgentKey, item: InboxItem): boolean;
  inboxSize(key: AgentKey): number;
  removeFromInbox(key: AgentKey, itemKeys: readonly string[]): void;
  /** Gives the row's cursor: growing over all rows of a tree. */
  addRow(key: AgentKey, entries: readonly Entry[]): number;
  addMessages(key: AgentKey, messages: readonly Message[]): void;
  addArtifacts(key: AgentKey, artifacts: readonly Artifact[]): void;
  setTimer(timer: Timer): void;
  clearTimer(key: AgentKey, timerId: string): void;
  process(processId: string): ProcessRow | undefined;
  putProcess(row: ProcessRow): void;
}

export const freshHead: Head = Object.freeze({
  epoch: 0,
  holder: null,
  seq: 0,
  at: 0,
  batchId: null,
  outcome: null,
});
