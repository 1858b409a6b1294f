import type { Account, Waiter } from "../../budget/index.ts";
import type {
  AgentKey,
  AgentRecord,
  AgentRequest,
  Artifact,
  Entry,
  InboxItem,
  JournalRow,
  Message,
  Timer,
} from "../../state/index.ts";
import type { LiveChannel } from "./live-channel.ts";
import type { Committed, ProcessIdentity } from "./outcomes.ts";
import type { ForeignWrites, SetBack, StoredRow, StoredTree } from "./ports.ts";
import type { AgentFilter, AgentPlace, Moment, RequestFilter, UnattendedQuery } from "./queries.ts";

export type ArtifactMeta = Omit<Artifact, "content">;

/**
 * What the last commit left to do by itself. `open`: a turn, which somebody has to be at. `parked`: a turn that was given
 * back while it waited for what others do. `none`: nothing.
 */
export type Work = "none" | "open" | "parked";

/** What changes with every commit, kept apart from the record so that a commit stays small. */
export interface Head {
  readonly epoch: number;
  /** Process that holds the lease; null: nobody. */
  readonly holder: string | null;
  readonly seq: number;
  readonly at: number;
  /** The last sign of life of whoever held it: its last commit, or when it gave the lease back; steady time. */
  readonly sign: number;
  /** The last applied batch, for the case that it is sent again. */
  readonly batchId: string | null;
  /** How many requests of the agent are open, so that a commit of one that has none need not look for them. */
  readonly openRequests: number;
  readonly work: Work;
}

/** What of a line is to be written: its waiters as they are now, and what of them is new. */
export interface LineChange {
  /** At the top of a tree, with the line's new revision. */
  readonly account: Account;
  readonly line: readonly Waiter[];
  readonly put: readonly Waiter[];
  /** Keys of asks. */
  readonly removed: readonly string[];
}

export interface ProcessRow extends ProcessIdentity {
  /** Tells the process from a later one that got the same pid; null where the system does not say. */
  readonly startTime: string | null;
  /** Steady time. */
  readonly heartbeatAt: number;
  /** What makes steady time of its clock's `elapsed()`. */
  readonly clockOffset: number;
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
  /** Those who wait on an account at the top of a tree, in the order of their places; asked only where its `line` is not empty. */
  waiters(tenant: string, account: Account): readonly Waiter[];
  /** Writes what has changed of a line; its account is put besides. */
  putLine(tenant: string, rootAgentId: string, change: LineChange): void;
  /** False when an item of that key is there already. */
  addToInbox(key: AgentKey, item: InboxItem): boolean;
  inboxSize(key: AgentKey): number;
  removeFromInbox(key: AgentKey, itemKeys: readonly string[]): void;
  /**
   * Adds a row to the journal, with the messages that came with it; one whose id is there already is left out. Gives the
   * row's cursor: growing over all rows of a tree.
   */
  addRow(key: AgentKey, entries: readonly Entry[], messages: readonly Message[]): number;
  /** Deletes the messages of all rows so far; the rows stay. */
  clearMessages(key: AgentKey): void;
  /** One whose id is there already is replaced, and keeps its place in the list. */
  putArtifact(key: AgentKey, artifact: Artifact): void;
  artifactMeta(key: AgentKey, artifactId: string): ArtifactMeta | undefined;
  /** The highest version of a name; 0 where there is none. */
  newestVersion(key: AgentKey, name: string): number;
  clearArtifacts(key: AgentKey): void;
  request(key: AgentKey, requestId: string): AgentRequest | undefined;
  /** Adds a request, or replaces the one of its id. */
  putRequest(request: AgentRequest): void;
  /** Those of one turn that are open. */
  openRequestsOf(key: AgentKey, turnId: string): AgentRequest[];
  setTimer(timer: Timer): void;
  clearTimer(key: AgentKey, timerId: string): void;
  process(processId: string): ProcessRow | undefined;
  processes(): ProcessRow[];
  putProcess(row: ProcessRow): void;
  removeProcess(processId: string): void;
}

export const freshHead: Head = Object.freeze({
  epoch: 0,
  holder: null,
  seq: 0,
  at: 0,
  sign: 0,
  batchId: null,
  openRequests: 0,
  work: "none",
});

/** The tables and the questions that are asked outside of commits; all answers are immutable values. */
export interface LocalTables extends Tables {
  /** In the order of the filter; `place` is its `after`, where the order is `newest` and it is given. */
  listAgents(filter: AgentFilter, limit: number, place?: AgentPlace): AgentRecord[];
  inbox(key: AgentKey): InboxItem[];
  rowsFrom(key: AgentKey, fromSeq: number): JournalRow[];
  treeRows(tenant: string, rootAgentId: string, afterCursor: number, limit: number): JournalRow[];
  messages(key: AgentKey, newest: number | undefined): Message[];
  messagesById(key: AgentKey, ids: readonly string[]): Message[];
  artifacts(key: AgentKey): ArtifactMeta[];
  artifact(key: AgentKey, artifactId: string): Artifact | undefined;
  /** The newest of that name without a version. */
  artifactByName(key: AgentKey, name: string, version: number | undefined): Artifact | undefined;
  /** In the order of their opening, those of one moment by their ids; only what comes after `after`, where it is given. */
  requests(filter: RequestFilter, after: AgentRequest | undefined, limit: number): AgentRequest[];
  projectionCursor(tenant: string, name: string, rootAgentId: string): number;
  /** Never back. */
  moveProjection(tenant: string, name: string, rootAgentId: string, cursor: number): void;
  accounts(tenant: string, rootAgentId: string): Account[];
  dueTimers(moment: Moment, limit: number): Timer[];
  nextTimerAt(): number | undefined;
  timer(key: AgentKey, timerId: string): Timer | undefined;

  /** In the order in which they were made. */
  agentsOfTree(tenant: string, rootAgentId: string): AgentRecord[];
  /** Oldest first. */
  timersOf(key: AgentKey): Timer[];
  /** All rows of a tree in the order of their cursors. */
  storedRows(tenant: string, rootAgentId: string): StoredRow[];
  projections(tenant: string, rootAgentId: string): StoredTree["projections"];
  /** Deletes all there is of a tree but its projections. Cursors that it had are never given to new rows. */
  removeTree(tenant: string, rootAgentId: string): void;
  /** Adds rows of a tree that was just removed, each under its cursor or, without one, a new one; gives the cursors. */
  restoreRows(tenant: string, rows: readonly RestoredRow[]): number[];
}

/** Tables that can tell by themselves who may have something to do. */
export interface RestlessTables extends LocalTables {
  /**
   * Agents that may have something to do and nobody who does it: those with a post, and those with work that is `open`,
   * which are not held, or held by a process that does not live. In an order of its own, after an agent of that id;
   * `limit`: how many are wanted, about.
   */
  restless(
    tenant: string,
    isLiving: (processId: string) => boolean,
    after: string | undefined,
    limit: number,
  ): Iterable<AgentKey>;
}

export interface RestoredRow {
  readonly row: StoredRow;
  readonly cursor: number | undefined;
}

/** Transactions over tables that are in this process. Work is synchronous, so nothing of this process comes between. */
export interface LocalDatabase {
  readonly tables: LocalTables;
  readonly live: LiveChannel;
  /** Runs work in a transaction: what it throws undoes all it did. */
  write<T>(work: () => T): Promise<T>;
  /** Runs a part of a transaction: what it throws undoes this part and goes on to the caller. */
  part<T>(work: () => T): T;
  /** Whether an error is that of the transaction as a whole, so that none of its parts can stand. */
  isFatal(error: unknown): boolean;
  read<T>(work: () => T): Promise<T>;
  /** At most `limit`. */
  unattended(tenant: string, query: UnattendedQuery & { readonly limit: number }, steady: number): Promise<AgentKey[]>;
  onForeignWrite(listener: (writes: ForeignWrites) => void): () => void;
  /** Absent where nothing that was acknowledged can be lost while a process that knows of it lives. */
  onSetBack?(listener: (found: SetBack) => void): () => void;
  close(): Promise<void>;
}
