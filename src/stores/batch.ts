import type { NewAccount, Settlement } from "../budget/index.ts";
import type {
  AgentIdentity,
  AgentKey,
  Artifact,
  Entry,
  InboxItem,
  Message,
  OwnedFields,
  TurnItem,
} from "../state/index.ts";

/** A change of the accounts that goes with a batch; applied in order, each on the account and all above it. */
export type BudgetMove =
  | { readonly type: "open"; readonly account: NewAccount }
  | { readonly type: "settle"; readonly settlement: Settlement }
  | { readonly type: "activity"; readonly accountId: string; readonly delta: 1 | -1 };

/** What a granted `child.spawned` brings into being, all of it at once or not at all. */
export interface SpawnOrder {
  /** The intent it belongs to. */
  readonly seq: number;
  readonly identity: AgentIdentity;
  readonly account: NewAccount;
  readonly turn: TurnItem;
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
  /** Seq of the last entry before this batch. */
  readonly expectedSeq: number;
  /** Consecutive, starting at `expectedSeq + 1`; may be empty when only acknowledgements go. */
  readonly entries: readonly Entry[];
  /** None without an entry; one whose id is stored already changes nothing (row R4). */
  readonly messages: readonly Message[];
  readonly artifacts: readonly Artifact[];
  readonly owned: OwnedFields | null;
  /** Ends the open turn; a queued one takes its place. */
  readonly closedTurnId: string | null;
  readonly moves: readonly BudgetMove[];
  readonly spawns: readonly SpawnOrder[];
  readonly posts: readonly Post[];
  /** Keys of inbox items that these entries have taken in. */
  readonly acknowledged: readonly string[];
  readonly clearedTimers: readonly string[];
}
