import type { Account, BudgetWarning } from "../../budget/index.ts";
import type {
  AccountHolder,
  AgentRecord,
  AgentRequest,
  Entry,
  InboxItem,
  Lifecycle,
  QueuedCall,
  Timer,
} from "../../state/index.ts";

export interface Committed {
  readonly type: "committed";
  /**
   * The entries as they now stand: granted intents hold their reservation, refused ones are `intent.refused`, saved
   * artifacts have their version.
   */
  readonly entries: readonly Entry[];
  readonly cursor: number;
  readonly warnings: readonly (BudgetWarning & { readonly holder?: AccountHolder | undefined })[];
  /** Agents of the tree whose inbox got something. */
  readonly posted: readonly string[];
  /** Timers this commit set, so that whoever holds the clock need not look. */
  readonly timers: readonly Timer[];
  /** The accounts that it changed, as they now stand. Absent where a batch is answered again. */
  readonly accounts?: readonly Account[];
}

/** The lease is lost or the journal has moved on: the caller owns nothing any more and discards its actors. */
export interface Stale {
  readonly type: "stale";
  readonly epoch: number;
  readonly seq: number;
}

export type CommitOutcome = Committed | Stale;

export interface ProcessIdentity {
  readonly processId: string;
  readonly pid: number;
  /** Tells one boot of a machine from another; a dead pid of the same boot is taken over at once. */
  readonly bootId: string;
}

export type AcquireOutcome =
  | {
      readonly type: "acquired";
      readonly epoch: number;
      /** Last committed entry. */
      readonly seq: number;
      /** Time of the last entry, so that time never goes back within a journal. */
      readonly at: number;
      readonly record: AgentRecord;
    }
  | { readonly type: "held"; readonly by: ProcessIdentity; readonly epoch: number }
  /** Whoever asked does not know the definition that the agent runs. Nothing was changed. */
  | { readonly type: "unknown"; readonly definition: string }
  | { readonly type: "notFound" };

/** Alarms of accounts, which need no owner of their agent to be answered. */
export type AccountTimer = Extract<Timer, { kind: "limit" | "claim" }>;

/** A queued call has not ended yet; it needs no owner of its agent either. */
export type JobTimer = Extract<Timer, { kind: "job" }>;

export interface FiredTimer {
  /** Agents whose inbox got something. */
  readonly posted: readonly string[];
  /** Alarms that were set. */
  readonly timers: readonly Timer[];
  /** Calls that have not ended: their jobs are to be added to their queues again. Absent: none. */
  readonly jobs?: readonly QueuedCall[];
}

/** Who is about to run a queued call. */
export interface CallClaim {
  readonly callId: string;
  readonly attempt: number;
  readonly processId: string;
  /** How long a process that gives no heartbeat is still believed to live, in milliseconds. */
  readonly leaseMs: number;
}

export type CallClaimOutcome =
  /** The call is to be run; `record` is the agent's, as it stands with the claim. */
  | { readonly type: "claimed"; readonly record: AgentRecord }
  /**
   * Somebody has begun it, and it may not be run twice. Whether it runs on is known only while `isAlive`. `by` has pid 0 and
   * no boot where the process was forgotten since.
   */
  | { readonly type: "taken"; readonly by: ProcessIdentity; readonly isAlive: boolean }
  /** A mark on the agent or above it forbids it: until the pause is over, or for ever. */
  | { readonly type: "refused"; readonly reason: "paused" | "aborted" }
  /** It has ended, was settled otherwise, or never was. */
  | { readonly type: "over" };

export type OpenTurnOutcome =
  | {
      readonly type: "opened" | "queued";
      readonly turnId: string;
      readonly number: number;
      readonly item: InboxItem;
      /** The agent as it stands now. */
      readonly record: AgentRecord;
      /** The agent itself, and whoever else was aborted with the turn that this one supersedes. */
      readonly posted: readonly string[];
    }
  /** The agent has had its first turn, and this was to be it. */
  | { readonly type: "given"; readonly turnId: string }
  | { readonly type: "busy"; readonly openTurnId: string }
  | { readonly type: "refused"; readonly status: Lifecycle }
  | { readonly type: "notFound" };

/** Whether the command changed anything, and whose inboxes it posted to. */
export type MarkOutcome =
  | { readonly type: "marked" | "unchanged"; readonly posted: readonly string[] }
  | { readonly type: "notFound" };

/** `request` is the request as it stands after the command: a conflict tells who won. */
export type DecideOutcome =
  | { readonly type: "decided"; readonly request: AgentRequest; readonly posted: readonly string[] }
  /** It was decided or closed before, or this very decision came after its expiry and made it expired. */
  | { readonly type: "conflict"; readonly request: AgentRequest; readonly posted: readonly string[] }
  /** The decision is about other arguments than those that are asked about. Nothing was changed (row S15). */
  | { readonly type: "changed"; readonly request: AgentRequest }
  /** A request of this kind does not take such a verdict. Nothing was changed. */
  | { readonly type: "unfit"; readonly request: AgentRequest }
  | { readonly type: "notFound" };
