import type { Account } from "../../budget/index.ts";
import type {
  AgentKey,
  AgentRecord,
  AgentRequest,
  Artifact,
  InboxItem,
  JournalRow,
  Message,
  Timer,
} from "../../state/index.ts";
import type { AgentPlace } from "./agent-place.ts";
import type { ForeignWrites } from "./foreign-write.ts";
import type { LiveChannel } from "./live-channel.ts";
import type { Moment } from "./moment.ts";
import type { AgentFilter, RequestFilter, UnattendedQuery } from "./queries.ts";
import type { SetBack } from "./set-back.ts";
import type { StoredRow, StoredTree } from "./stored-tree.ts";
import type { ArtifactMeta, Tables } from "./tables.ts";

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
