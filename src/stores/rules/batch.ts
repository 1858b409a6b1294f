import type { NewAccount, Settlement } from "../../budget/index.ts";
import type {
  AgentIdentity,
  AgentKey,
  AgentRequest,
  Artifact,
  Entry,
  InboxItem,
  Message,
  OwnedFields,
  StoredDefinition,
  Timer,
  TurnItem,
} from "../../state/index.ts";

/**
 * A change of the accounts that goes with a batch; changes are applied in order, each to the account and all accounts
 * above it.
 */
export type BudgetMove =
  | { readonly type: "open"; readonly account: NewAccount }
  | { readonly type: "settle"; readonly settlement: Settlement }
  /** Whether the account's own holder is working now; repeating the same value changes nothing. */
  | { readonly type: "activity"; readonly accountId: string; readonly isActive: boolean }
  /** The turn of the account ends while these accounts under it go on: they share what it has left. */
  | { readonly type: "background"; readonly accountId: string; readonly childAccountIds: readonly string[] };

/** An artifact without its version, which the commit assigns. */
export type NewArtifact = Omit<Artifact, "version">;

/** Everything that a granted `child.spawned` creates, all of it or nothing. */
export interface SpawnOrder {
  /** Seq of the intent that it belongs to. */
  readonly seq: number;
  readonly identity: AgentIdentity;
  readonly account: NewAccount;
  readonly turn: TurnItem;
  /** Kept with the tree. */
  readonly definition?: StoredDefinition | undefined;
}

/** Starts a turn without a request of a caller, if none is open once the batch has been applied. */
export interface WakeOrder {
  /** The child whose end is the reason. The turn spends from what is left of the turn that started the child. */
  readonly childId: string;
  readonly actorId: string | null;
}

/** An item for another agent of the same tree. */
export interface Post {
  readonly agentId: string;
  readonly item: InboxItem;
}

/**
 * One agent's next entries and everything that must become true together with them, atomically, under `(epoch,
 * expectedSeq)` (docs/architecture.md).
 */
export interface Batch {
  /**
   * A batch that is sent again after a transport failure keeps its id; if it was applied before, the answer is the
   * first outcome.
   */
  readonly id: string;
  readonly key: AgentKey;
  readonly epoch: number;
  /**
   * The process that holds the lease. If given, a lease of the same epoch held by another process counts as stale:
   * stores that were rolled back give out an epoch twice.
   */
  readonly processId?: string | undefined;
  /** Seq of the last entry before this batch. */
  readonly expectedSeq: number;
  /** Consecutive, starting at `expectedSeq + 1`; empty when the batch only acknowledges. */
  readonly entries: readonly Entry[];
  /** Needs at least one entry. A message whose id is stored already is left out. */
  readonly messages: readonly Message[];
  /**
   * Each gets the next version of its name. An artifact whose id is stored already replaces that one and keeps its
   * version.
   */
  readonly artifacts: readonly NewArtifact[];
  /**
   * Deletes the messages that were stored before this batch, and for `all` the artifacts too, whose versions start
   * again at 1. The journal stays. `null` deletes nothing.
   */
  readonly cleared: "conversation" | "all" | null;
  readonly owned: OwnedFields | null;
  /** A definition that these entries name first, to be kept with the tree. Default: the one that the agent's record names. */
  readonly definition?: StoredDefinition | undefined;
  /** Requests to open; one whose id is stored already is left unchanged. An expiry sets a timer. */
  readonly requests: readonly AgentRequest[];
  /** Requests to close because the turn went on without them; requests that are decided already stay decided. */
  readonly closedRequests: readonly string[];
  /** Ends the open turn and closes its open requests; the next queued turn takes its place. */
  readonly closedTurnId: string | null;
  readonly moves: readonly BudgetMove[];
  readonly spawns: readonly SpawnOrder[];
  readonly posts: readonly Post[];
  /** Keys of the inbox items that these entries have consumed. */
  readonly acknowledged: readonly string[];
  /** Timers to set. Default none. */
  readonly timers?: readonly Timer[] | undefined;
  readonly clearedTimers: readonly string[];
  readonly wake?: WakeOrder | undefined;
  /**
   * Gives the lease back too, even with work left to do: items in the inbox wait for the next owner. By default the owner
   * keeps it.
   */
  readonly leaves?: boolean | undefined;
}
