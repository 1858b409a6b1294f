import type { Account, Hold, Moment, Waiter } from "../../budget/index.ts";
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
  Schedule,
  StoredDefinition,
  Timer,
  TreeWebhooks,
  TurnRecord,
} from "../../state/index.ts";
import type { ForeignWrites } from "./foreign-writes.ts";
import type { LiveChannel } from "./live-channel.ts";
import type { Committed, RegisteredProcess, SteerMeaning } from "./outcomes.ts";
import type { RolledBackTree, StoredRow, StoredTree, StoredTurn } from "./ports.ts";
import type {
  AgentFilter,
  AgentListCursor,
  DeletionQuery,
  RequestFilter,
  ScheduleCursor,
  ScheduleFilter,
  TurnFilter,
  TurnListCursor,
  UnattendedQuery,
} from "./queries.ts";

export type ArtifactMeta = Omit<Artifact, "content">;

/**
 * The remaining work after the last commit. `open`: a turn, which needs an owner. `parked`: a turn that was released while it waited for
 * others. `none`: no work.
 */
export type Work = "none" | "open" | "parked";

/** The fields of an agent that change with every commit, separate from the record to keep commits small. */
export interface Head {
  readonly epoch: number;
  /** The process that holds the lease; `null` if none does. */
  readonly holder: string | null;
  readonly seq: number;
  readonly at: number;
  /** The last sign of life of the owner: its last commit or release, in steady time. */
  readonly sign: number;
  /** Id of the last applied batch, in case it is sent again. */
  readonly batchId: string | null;
  /** Number of open requests of the agent, so that most commits need not read them. */
  readonly openRequests: number;
  readonly work: Work;
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

/** A change of a reservation queue: all waiters after the change, and the difference to write. */
export interface WaiterChanges {
  /** The top account, with the queue's new revision. */
  readonly account: Account;
  readonly waiters: readonly Waiter[];
  readonly put: readonly Waiter[];
  /** Keys of the asks. */
  readonly removed: readonly string[];
}

export type TurnChange = Pick<TurnRecord, "status" | "stopReason" | "changedAt">;

/**
 * The meaning of a key that a caller chose: a turn, with the hash of its parameters, the decision on a request, with the turn of the
 * root agent in which it was made, or an input for an open turn.
 */
export type KeyMeaning =
  | { readonly turnId: string; readonly hash: string }
  | { readonly turnId: string; readonly requestId: string }
  | SteerMeaning;

export interface ProcessRow extends RegisteredProcess {
  /** Distinguishes the process from a later one with the same pid; `null` if unknown. */
  readonly startTime: string | null;
}

/** `follows` may be unknown until the transaction is written. */
export type AddedRow = Pick<Committed, "cursor" | "follows">;

/**
 * The rows of accounts above the roots of trees, by kind; they belong to a tenant, not to a tree. `waiters` are those of a top account, under
 * its id.
 */
export interface OuterRows {
  readonly account: Account;
  readonly hold: Hold;
  readonly waiters: readonly Waiter[];
}
export type OuterKind = keyof OuterRows;

/** The rows of one ledger. */
export type LedgerTables = Pick<
  Tables,
  "account" | "putAccount" | "waiters" | "putWaiters" | "addToInbox" | "setTimer" | "clearTimer"
>;

/** The synchronous rows for commits, commands and leases, inside one transaction of an adapter. */
export interface Tables {
  agent(key: AgentKey): AgentRecord | undefined;
  putAgent(record: AgentRecord): void;
  childrenOf(key: AgentKey): AgentRecord[];
  head(key: AgentKey): Head;
  /** `outcome` belongs to the batch that changed the head; without one, the last outcome is kept. */
  putHead(key: AgentKey, head: Head, outcome?: Committed): void;
  /** The outcome of the batch `head.batchId`. */
  lastOutcome(key: AgentKey): Committed | undefined;
  account(tenant: string, accountId: string): Account | undefined;
  putAccount(tenant: string, rootAgentId: string, account: Account): void;
  /** The waiters of a top account, in queue order; called only if its `line` is not empty. */
  waiters(tenant: string, account: Account): readonly Waiter[];
  /** Writes the changes of a reservation queue; the account is written separately. */
  putWaiters(tenant: string, rootAgentId: string, change: WaiterChanges): void;
  /** `false` if the inbox already contains an item with that key. */
  addToInbox(key: AgentKey, item: InboxItem): boolean;
  inboxSize(key: AgentKey): number;
  removeFromInbox(key: AgentKey, itemKeys: readonly string[]): void;
  /** Adds a row with its messages to the journal, without messages whose id is stored already. Cursors grow over all rows of a tree. */
  addRow(key: AgentKey, entries: readonly Entry[], messages: readonly Message[]): AddedRow;
  /** Deletes the messages of all previous rows; the rows are kept. */
  clearMessages(key: AgentKey): void;
  /** Replaces an artifact with the same id, which keeps its position in the list. */
  putArtifact(key: AgentKey, artifact: Artifact): void;
  artifactMeta(key: AgentKey, artifactId: string): ArtifactMeta | undefined;
  /** The highest version of a name; 0 if there is none. */
  newestVersion(key: AgentKey, name: string): number;
  clearArtifacts(key: AgentKey): void;
  request(key: AgentKey, requestId: string): AgentRequest | undefined;
  /** Adds a request, or replaces the one with the same id. */
  putRequest(request: AgentRequest): void;
  /** The open requests of one turn. */
  openRequestsOf(key: AgentKey, turnId: string): AgentRequest[];
  /** Adds a turn, or replaces the one with the same id. */
  putTurn(turn: StoredTurn): void;
  /** Changes a turn of a root agent. */
  moveTurn(key: AgentKey, turnId: string, change: TurnChange): void;
  /** `root`: the agent at the root of the tree, which stores the keys of all its turns and decisions. */
  meaningOf(root: AgentKey, text: string): KeyMeaning | undefined;
  /** Adds or replaces an input for an open turn of the agent, which `meaningOf` then finds under its key or id. */
  putSteer(key: AgentKey, keyOrId: string, meaning: SteerMeaning): void;
  /** Stores a definition under its hash, once per tree. */
  keepDefinition(tenant: string, rootAgentId: string, definition: StoredDefinition): void;
  /** A row above the roots. Where `spansTrees` is false, one piece of work uses either these rows or those of one tree. */
  outerRow<Kind extends OuterKind>(tenant: string, kind: Kind, id: string): OuterRows[Kind] | undefined;
  putOuterRow<Kind extends OuterKind>(tenant: string, kind: Kind, id: string, row: OuterRows[Kind]): void;
  removeOuterRow(tenant: string, kind: OuterKind, id: string): void;
  setTimer(timer: Timer): void;
  clearTimer(key: AgentKey, timerId: string): void;
  process(processId: string): ProcessRow | undefined;
  processes(): ProcessRow[];
  putProcess(row: ProcessRow): void;
  removeProcess(processId: string): void;
  /** Read and written by works of their own; in a work on a tree, read without validation. */
  deletion(tenant: string, idHash: string): Deletion | undefined;
}

/** All tables of a store, including the reads outside of commits; all results are immutable. */
export interface StoreTables extends Tables {
  /** In the order of the filter; `place` is its parsed `after` in the order `newest`. */
  listAgents(filter: AgentFilter, limit: number, place?: AgentListCursor): AgentRecord[];
  inbox(key: AgentKey): InboxItem[];
  rowsFrom(key: AgentKey, fromSeq: number): JournalRow[];
  treeRows(tenant: string, rootAgentId: string, afterCursor: number, limit: number): JournalRow[];
  /** Cursor of the tree's last row; 0 if it has none. */
  lastCursor(tenant: string, rootAgentId: string): number;
  messages(key: AgentKey, newest: number | undefined): Message[];
  messagesById(key: AgentKey, ids: readonly string[]): Message[];
  artifacts(key: AgentKey): ArtifactMeta[];
  artifact(key: AgentKey, artifactId: string): Artifact | undefined;
  /** Without a version: the newest artifact of that name. */
  artifactByName(key: AgentKey, name: string, version: number | undefined): Artifact | undefined;
  /** In the order of opening, then by id; only those after `after`, if given. */
  requests(filter: RequestFilter, after: AgentRequest | undefined, limit: number): AgentRequest[];
  /** In the order of change, newest first, then by id; only those after `place`, if given. */
  turns(filter: TurnFilter, limit: number, place?: TurnListCursor): TurnRecord[];
  projectionCursor(tenant: string, name: string, rootAgentId: string): number;
  /** A lower cursor than the stored one changes nothing. */
  moveProjection(tenant: string, name: string, rootAgentId: string, cursor: number): void;
  webhooks(tenant: string, rootAgentId: string): TreeWebhooks | undefined;
  putWebhooks(webhooks: TreeWebhooks): void;
  removeWebhooks(tenant: string, rootAgentId: string): void;
  /** Earliest first. */
  dueWebhooks(tenant: string, now: number, limit: number): TreeWebhooks[];
  schedule(tenant: string, key: string): Schedule | undefined;
  /** Adds a schedule, or replaces the one with the same key. */
  putSchedule(schedule: Schedule): void;
  removeSchedule(tenant: string, key: string): void;
  /** By key; only those after `filter.after`. */
  schedules(filter: ScheduleFilter, limit: number): Schedule[];
  /** Those whose `scheduleDueAt` is up to `now`, earliest first, then by key; only those after `place`, if given. */
  dueSchedules(tenant: string, now: number, limit: number, place?: ScheduleCursor): Schedule[];
  /** The earliest `scheduleDueAt` after a time. */
  nextScheduleAt(tenant: string, after: number): number | undefined;
  accounts(tenant: string, rootAgentId: string): Account[];
  /** Ids of the rows of a kind above the roots, in order; only those after `after`, if given. */
  outerIds(tenant: string, kind: OuterKind, after: string | undefined, limit: number): string[];
  /** The same rows themselves. */
  outerRows<Kind extends OuterKind>(
    tenant: string,
    kind: Kind,
    after: string | undefined,
    limit: number,
  ): OuterRows[Kind][];
  definition(tenant: string, rootAgentId: string, hash: string): StoredDefinition | undefined;
  dueTimers(moment: Moment, limit: number): Timer[];
  nextTimerAt(): number | undefined;
  timer(key: AgentKey, timerId: string): Timer | undefined;

  /** In the order in which they were created. */
  agentsOfTree(tenant: string, rootAgentId: string): AgentRecord[];
  /** All turns of an agent, by number. */
  turnsOf(key: AgentKey): StoredTurn[];
  /** Oldest first. */
  timersOf(key: AgentKey): Timer[];
  /** All rows of a tree in the order of their cursors. */
  storedRows(tenant: string, rootAgentId: string): StoredRow[];
  projections(tenant: string, rootAgentId: string): StoredTree["projections"];
  /** All definitions of a tree, by hash. */
  definitionsOf(tenant: string, rootAgentId: string): StoredDefinition[];
  /** Deletes all data of a tree except its projections; webhooks may be deleted too. Its cursors are never assigned again. */
  removeTree(tenant: string, rootAgentId: string): void;
  /**
   * Deletes everything of a tree: also its projections, its webhooks, its cursors, and definitions that no other tree of the tenant uses.
   * Does nothing if the tree is not stored.
   */
  purgeTree(tenant: string, rootAgentId: string): void;
  /** Adds a deletion, or replaces the one of the same tree. */
  putDeletion(deletion: Deletion): void;
  removeDeletion(tenant: string, idHash: string): void;
  /** Oldest first, then by hash. */
  deletions(query: DeletionQuery & { readonly limit: number }): Deletion[];
  /** Adds rows of a tree that was just removed, each under its own or a new cursor; returns the cursors. */
  restoreRows(tenant: string, rows: readonly RestoredRow[]): number[];
}

/** Tables that can list agents that may be unattended. */
export interface CandidateTables extends StoreTables {
  /**
   * Agents that have an inbox item or `open` work, and no living owner. Each store has its own order; starts after the agent `after`.
   * `limit` is the approximate number of results.
   */
  unattendedCandidates(
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

/**
 * The tables of a store and their transactions. Work on the tables is synchronous: a database that has to load a row first runs the work
 * again, so work must not have other effects.
 */
export interface Database {
  readonly tables: StoreTables;
  /** Whether one piece of work may write to several trees and above them, in one transaction. */
  readonly spansTrees: boolean;
  /** `undefined` if live messages only reach users of one stores object in this process. */
  readonly live?: LiveChannel;
  /**
   * Runs work in a transaction; an exception undoes all of it, but no other work that shares the transaction. Works take effect in the
   * order of the calls.
   */
  write<T>(work: () => T): Promise<T>;
  read<T>(work: () => T): Promise<T>;
  /** Implements `Stores.rest`; `undefined` if the database has nothing to free. */
  rest?(keys: readonly AgentKey[]): void;
  /** Implements `Stores.dropTree`; `undefined` if the database caches nothing. */
  dropTree?(key: AgentKey): void;
  /** At most `limit`. */
  unattended(tenant: string, query: UnattendedQuery & { readonly limit: number }, steady: number): Promise<AgentKey[]>;
  /** Those of the given agents (at least one) whose inbox is not empty. */
  posted(keys: readonly AgentKey[]): Promise<AgentKey[]>;
  /**
   * Removes what is left of deleted rows outside of the tables: old pages of a file, and of a deleted tree the entries of indexes. May be
   * repeated. `undefined` if nothing is left.
   */
  scrub?(tree?: AgentKey): Promise<void>;
  onForeignWrite(listener: (writes: ForeignWrites) => void): () => void;
  /** `undefined` if an acknowledged write cannot be lost while a process that knows of it lives. */
  onRolledBack?(listener: (found: RolledBackTree) => void): () => void;
  close(): Promise<void>;
}
