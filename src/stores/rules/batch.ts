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
  Timer,
  TurnItem,
} from "../../state/index.ts";

/** A change of the accounts that goes with a batch; applied in order, each on the account and all above it. */
export type BudgetMove =
  | { readonly type: "open"; readonly account: NewAccount }
  | { readonly type: "settle"; readonly settlement: Settlement }
  /** Whether the account's own holder works now; told again, it changes nothing. */
  | { readonly type: "activity"; readonly accountId: string; readonly isActive: boolean }
  /** The turn of the account ends while these accounts under it go on: they share what it has left. */
  | { readonly type: "background"; readonly accountId: string; readonly childAccountIds: readonly string[] };

/** An artifact as it is handed in: the commit gives its version. */
export type NewArtifact = Omit<Artifact, "version">;

/** What a granted `child.spawned` brings into being, all of it at once or not at all. */
export interface SpawnOrder {
  /** The intent it belongs to. */
  readonly seq: number;
  readonly identity: AgentIdentity;
  readonly account: NewAccount;
  readonly turn: TurnItem;
}

/** Why an agent starts a turn by itself, if none is open when the batch has been applied. */
export interface WakeOrder {
  /** The child whose end calls for it; the turn spends from what the turn that started the child had left. */
  readonly childId: string;
  readonly actorId: string | null;
}

/** An item for another agent of the same tree. */
export interface Post {
  readonly agentId: string;
  readonly item: InboxItem;
}

/**
 * One agent's next entries and everything that must become true with them, atomically, under `(epoch, expectedSeq)`
 * (design, The journal).
 */
export interface Batch {
  /** Sent again under the same id after a transport failure; an applied one answers with its first outcome. */
  readonly id: string;
  readonly key: AgentKey;
  readonly epoch: number;
  /**
   * The process that has the lease. Where it is given, a lease of the same epoch that another process has is not its own:
   * stores that were set back give an epoch a second time.
   */
  readonly processId?: string | undefined;
  /** Seq of the last entry before this batch. */
  readonly expectedSeq: number;
  /** Consecutive, starting at `expectedSeq + 1`; may be empty when only acknowledgements go. */
  readonly entries: readonly Entry[];
  /** None without an entry; one whose id is stored already changes nothing (row R4). */
  readonly messages: readonly Message[];
  /** Each gets the next version of its name; one whose id is stored already takes the first one's place and version. */
  readonly artifacts: readonly NewArtifact[];
  /**
   * Deletes the agent's messages that are stored before this batch, and for `all` its artifacts too, whose versions
   * start again at 1. The journal stays. Null: nothing.
   */
  readonly cleared: "conversation" | "all" | null;
  readonly owned: OwnedFields | null;
  /** Opened by this batch; one whose id is stored already changes nothing. An expiry sets a timer. */
  readonly requests: readonly AgentRequest[];
  /** Ids of requests that the turn went on without; those that are decided already stay so. */
  readonly closedRequests: readonly string[];
  /** Ends the open turn; a queued one takes its place. Its open requests are closed. */
  readonly closedTurnId: string | null;
  readonly moves: readonly BudgetMove[];
  readonly spawns: readonly SpawnOrder[];
  readonly posts: readonly Post[];
  /** Keys of inbox items that these entries have taken in. */
  readonly acknowledged: readonly string[];
  /** Absent: none. */
  readonly timers?: readonly Timer[] | undefined;
  readonly clearedTimers: readonly string[];
  readonly wake?: WakeOrder | undefined;
}
