import type { Account, Waiter } from "../../budget/index.ts";
import type { AgentRecord, AgentRequest, Artifact, InboxItem, JournalRow, Message, Timer } from "../../state/index.ts";
import type { Committed } from "./outcomes.ts";

/** A row of the journal with the messages that came with it; the order of rows and in them is that of the messages. */
export interface StoredRow extends JournalRow {
  readonly messages: readonly Message[];
}

/** One agent with all that is its own. */
export interface StoredAgent {
  readonly record: AgentRecord;
  readonly epoch: number;
  /** Whether a process held its lease. */
  readonly isHeld: boolean;
  /** Last committed entry, and its time; 0 when there is none. */
  readonly seq: number;
  readonly at: number;
  /** The last sign of life of its owner, in the store's steady time. */
  readonly sign: number;
  /** Whether its turn was parked. Absent: no. */
  readonly isParked?: boolean;
  /** The last applied batch and its answer, for the case that it is sent again. */
  readonly lastBatch: { readonly id: string; readonly outcome: Committed } | null;
  readonly artifacts: readonly Artifact[];
  readonly inbox: readonly InboxItem[];
  readonly timers: readonly Timer[];
  readonly requests: readonly AgentRequest[];
}

/** Keys of inbox items by agent id. */
export type KnownItems = ReadonlyMap<string, ReadonlySet<string>>;

/** Everything that a store knows of one tree, as one plain value: it may be written as JSON. */
export interface StoredTree {
  readonly tenant: string;
  readonly rootAgentId: string;
  /** In the order in which they were made. */
  readonly agents: readonly StoredAgent[];
  readonly accounts: readonly Account[];
  /** Those who wait on the accounts at the top, by account id. */
  readonly lines: Readonly<Record<string, readonly Waiter[]>>;
  /** Rows of all its agents in the order of their cursors. */
  readonly rows: readonly StoredRow[];
  /** How far each projection has come. */
  readonly projections: readonly { readonly name: string; readonly cursor: number }[];
}
