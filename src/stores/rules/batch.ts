import type { NewAccount, OuterLimits, Settlement } from "../../budget/index.ts";
import type {
  AgentIdentity,
  AgentKey,
  AgentRequest,
  Artifact,
  Entry,
  InboxItem,
  Message,
  OwnedFields,
  SteerItem,
  StoredDefinition,
  Timer,
  TurnItem,
} from "../../state/index.ts";
import type { OuterAnswers } from "./outer-answers.ts";

/** A change of accounts in a batch; changes are applied in order, each to the account and all accounts above it. */
export type BudgetMove =
  | { readonly type: "open"; readonly account: NewAccount }
  | { readonly type: "settle"; readonly settlement: Settlement }
  /** Whether the account's own agent is working now; repeating the same value changes nothing. */
  | { readonly type: "activity"; readonly accountId: string; readonly isActive: boolean }
  /** The turn of the account ends while these accounts under it continue: they share its remaining budget. */
  | { readonly type: "background"; readonly accountId: string; readonly childAccountIds: readonly string[] };

/** An artifact without its version, which the commit assigns. */
export type NewArtifact = Omit<Artifact, "version">;

/** Everything that a granted `child.spawned` creates, all or nothing. */
export interface SpawnOrder {
  /** Seq of the `child.spawned` intent. */
  readonly seq: number;
  readonly identity: AgentIdentity;
  readonly account: NewAccount;
  readonly turn: TurnItem;
  /** Stored with the tree. */
  readonly definition?: StoredDefinition | undefined;
}

/** Opens a turn without a caller's request, if no turn is open after the batch was applied. */
export interface WakeOrder {
  /** The child whose end is the reason. The turn spends the remaining budget of the turn that started the child. */
  readonly childId?: string | undefined;
  /** Messages of the conversation that are the turn's input: those that were meant for an earlier turn. Default: none. */
  readonly inputMessageIds?: readonly string[] | undefined;
  readonly actorId: string | null;
}

/** An item for another agent of the same tree. */
export interface Post {
  readonly agentId: string;
  readonly item: InboxItem;
}

/**
 * One agent's next entries, and all changes that must be applied together with them, atomically, under `(epoch, expectedSeq)`
 * (docs/architecture.md).
 */
export interface Batch {
  /** A batch that is sent again after a transport failure keeps its id; if it was applied before, the first outcome is returned. */
  readonly id: string;
  readonly key: AgentKey;
  readonly epoch: number;
  /**
   * The process that holds the lease. If given, a lease of the same epoch held by another process counts as stale: rolled back stores
   * assign an epoch twice.
   */
  readonly processId?: string | undefined;
  /** Seq of the last entry before this batch. */
  readonly expectedSeq: number;
  /** Consecutive, starting at `expectedSeq + 1`; empty if the batch only acknowledges. */
  readonly entries: readonly Entry[];
  /** Needs at least one entry. Messages with a stored id are left out. */
  readonly messages: readonly Message[];
  /** Each gets the next version of its name. An artifact with a stored id replaces the stored one and keeps its version. */
  readonly artifacts: readonly NewArtifact[];
  /**
   * Deletes the messages that were stored before this batch, and for `all` the artifacts too; their versions start again at 1. The
   * journal is kept. `null` deletes nothing.
   */
  readonly cleared: "conversation" | "all" | null;
  readonly owned: OwnedFields | null;
  /** A definition that these entries are the first to refer to; stored with the tree. Default: the definition in the agent's record. */
  readonly definition?: StoredDefinition | undefined;
  /** Requests to open; a request with a stored id is left unchanged. An expiry sets a timer. */
  readonly requests: readonly AgentRequest[];
  /** Requests to close because the turn continued without them; decided requests stay decided. */
  readonly closedRequests: readonly string[];
  /** Ends the open turn and closes its open requests; the next queued turn becomes the open one. */
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
  /** The accounts above the agent's root, from the owner's to the tenant's. Default none. */
  readonly above?: readonly OuterLimits[] | undefined;
  /** For requests that the commit opens: the actor of the open turn, and whether a rule decides who may decide. */
  readonly asking?: { readonly actorId: string | null; readonly isGuarded: boolean } | undefined;
  /** The answers of those accounts, if they were charged already. Default: the commit charges them. */
  readonly answers?: OuterAnswers | undefined;
  /** Whether the tree is only in the memory of its process. Default `false`. */
  readonly isApart?: boolean | undefined;
  /** Acknowledged inputs that the open turn does not take in: each opens a turn behind the open and the queued ones. Default none. */
  readonly deferred?: readonly SteerItem[] | undefined;
  /** Also releases the lease, even if work remains: inbox items wait for the next owner. Default: the owner keeps it. */
  readonly leaves?: boolean | undefined;
}
