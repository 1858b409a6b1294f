import type { Account } from "../budget/index.ts";
import type { AgentKey, AgentRecord, Artifact, Entry, InboxItem, Message, Timer } from "../state/index.ts";
import type { Committed, ProcessIdentity } from "./outcomes.ts";

/** What changes with every commit, kept apart from the record so that a commit stays small. */
export interface Head {
  readonly epoch: number;
  /** Process that holds the lease; null: nobody. */
  readonly holder: string | null;
  readonly seq: number;
  readonly at: number;
  /** The last applied batch, for the case that it is sent again. */
  readonly batchId: string | null;
}

export interface ProcessRow extends ProcessIdentity {
  /** Tells the process from a later one that got the same pid; null where the system does not say. */
  readonly startTime: string | null;
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
  /** With the outcome of the batch that moved it; without one, the last outcome stays. */
  putHead(key: AgentKey, head: Head, outcome?: Committed): void;
  /** What the batch of `head.batchId` was answered. */
  lastOutcome(key: AgentKey): Committed | undefined;
  account(tenant: string, accountId: string): Account | undefined;
  putAccount(tenant: string, rootAgentId: string, account: Account): void;
  /** False when an item of that key is there already. */
  addToInbox(key: AgentKey, item: InboxItem): boolean;
  inboxSize(key: AgentKey): number;
  removeFromInbox(key: AgentKey, itemKeys: readonly string[]): void;
  /**
   * Adds a row to the journal, with the messages that came with it; one whose id is there already is left out. Gives the
   * row's cursor: growing over all rows of a tree.
   */
  addRow(key: AgentKey, entries: readonly Entry[], messages: readonly Message[]): number;
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
});
