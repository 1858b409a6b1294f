import type { Account, BudgetWarning, Limits } from "../../budget/index.ts";
import type {
  AccountHolder,
  AgentRecord,
  AgentRequest,
  Entry,
  InboxItem,
  Lifecycle,
  Message,
  QueuedCall,
  Timer,
} from "../../state/index.ts";

export interface Committed {
  readonly type: "committed";
  /**
   * The entries as stored: granted intents hold their reservation, refused ones have become `intent.refused`, saved
   * artifacts have their version.
   */
  readonly entries: readonly Entry[];
  readonly cursor: number;
  /** No row of the tree lies between this cursor and `cursor`. `undefined` if a batch is answered again. */
  readonly follows?: number | undefined;
  readonly warnings: readonly (BudgetWarning & { readonly holder?: AccountHolder | undefined })[];
  /** Agents of the tree whose inbox got something. */
  readonly posted: readonly string[];
  /** Timers that this commit set, so that the scheduler need not look them up. */
  readonly timers: readonly Timer[];
  /** The changed accounts. `undefined` if a batch is answered again. */
  readonly accounts?: readonly Account[];
}

/** The lease is lost, the journal has moved on, or the turn cannot be opened: the caller no longer owns the agent and discards its actors. */
export interface Stale {
  readonly type: "stale";
  readonly epoch: number;
  readonly seq: number;
}

export type CommitOutcome = Committed | Stale;

export interface ProcessIdentity {
  readonly processId: string;
  readonly pid: number;
  /** Identifies one boot of a machine: agents of a dead process of the same boot are taken over at once. */
  readonly bootId: string;
  /** When it was started, in a unit of its system, so that a later process with its pid is not taken for it. Default: unknown. */
  readonly startTime?: string | null | undefined;
  /** Name of its machine. Default: unknown. */
  readonly host?: string | undefined;
  /** When it was started, in milliseconds since the epoch. Default: unknown. */
  readonly startedAt?: number | undefined;
}

/** A process as the stores know it. */
export interface RegisteredProcess extends ProcessIdentity {
  /** Its last heartbeat, in steady time. A process that has nothing to keep up writes one an hour. */
  readonly heartbeatAt: number;
  /** The difference between steady time and its clock's `elapsed()`. */
  readonly clockOffset: number;
}

export type AcquireOutcome =
  | {
      readonly type: "acquired";
      readonly epoch: number;
      /** Seq of the last committed entry. */
      readonly seq: number;
      /** Time of the last entry, so that time never goes back within a journal. */
      readonly at: number;
      readonly record: AgentRecord;
    }
  | { readonly type: "held"; readonly by: ProcessIdentity; readonly epoch: number }
  /** The caller does not have the definition that the agent runs. Nothing was changed. */
  | { readonly type: "unknown"; readonly definition: string }
  | { readonly type: "notFound" };

/** Timers of accounts; handling them does not need the agent's owner. */
export type AccountTimer = Extract<Timer, { kind: "limit" | "claim" }>;

/** The timer of a queued call that has not ended; handling it does not need the agent's owner either. */
export type JobTimer = Extract<Timer, { kind: "job" }>;

export interface FiredTimer {
  /** Agents whose inbox got something. */
  readonly posted: readonly string[];
  /** Timers that were set. */
  readonly timers: readonly Timer[];
  /** Calls that have not ended: their jobs must be added to their queues again. `undefined` if there are none. */
  readonly jobs?: readonly QueuedCall[];
}

/** A worker that is about to run a queued call. */
export interface CallClaim {
  readonly callId: string;
  readonly attempt: number;
  readonly processId: string;
  /** For how long a process without a heartbeat is considered alive, in milliseconds. */
  readonly leaseMs: number;
}

export type CallClaimOutcome =
  /** Run the call; `record` is the agent's record including the claim. */
  | { readonly type: "claimed"; readonly record: AgentRecord }
  /**
   * A worker has begun the call, and it must not run twice. It may still be running only if `isAlive`. If the process
   * was forgotten since, `by` has pid 0 and an empty boot id.
   */
  | { readonly type: "taken"; readonly by: ProcessIdentity; readonly isAlive: boolean }
  /** A mark on the agent or above it forbids the call, until the pause ends or for ever. */
  | { readonly type: "refused"; readonly reason: "paused" | "aborted" }
  /** The call has ended, was settled in another way, or never existed. */
  | { readonly type: "over" };

export type SetBudgetOutcome =
  | {
      readonly type: "changed";
      readonly account: Account;
      /** The limits that it had. */
      readonly before: Limits;
      /** Agents whose inbox got something. */
      readonly posted: readonly string[];
      /** Timers that were set. */
      readonly timers: readonly Timer[];
    }
  /** The limits are those that it has. */
  | { readonly type: "unchanged"; readonly account: Account }
  /** The agent has no account for its life. */
  | { readonly type: "unlimited" }
  /** The agent is shut down. */
  | { readonly type: "asleep" }
  | { readonly type: "notFound" };

export type OpenTurnOutcome =
  | {
      readonly type: "opened" | "queued";
      readonly turnId: string;
      readonly number: number;
      readonly item: InboxItem;
      /** The agent's record after the command. */
      readonly record: AgentRecord;
      /** The agent itself, and all agents that were aborted with the superseded turn. */
      readonly posted: readonly string[];
      /** The process that held the agent when the turn was posted to it; `undefined` if none did, or if the stores do not tell. */
      readonly holder?: ProcessIdentity | undefined;
    }
  /** The agent has had its first turn, and this command was to open it. */
  | { readonly type: "given"; readonly turnId: string }
  /** The agent has the turn of this key. */
  | { readonly type: "known"; readonly turnId: string; readonly record: AgentRecord }
  /** The key means a turn that was asked for otherwise, or a decision on this request, made during the turn. */
  | { readonly type: "conflict"; readonly turnId: string; readonly requestId?: string | undefined }
  | { readonly type: "busy"; readonly openTurnId: string }
  | { readonly type: "refused"; readonly status: Lifecycle }
  | { readonly type: "notFound" };

/** A turn's agent, and what the turn's result is made of once it has ended. */
export interface StoredLook {
  readonly record: AgentRecord;
  /** `undefined` while the turn is open, queued or to come. */
  readonly past:
    | {
        /** The turn's own. */
        readonly entries: readonly Entry[];
        /** The message that its end names. */
        readonly answer: Message | undefined;
        readonly account: Account | undefined;
      }
    | undefined;
}

/** Whether the command changed anything, and the agents whose inbox got something. */
export type MarkOutcome =
  | { readonly type: "marked" | "unchanged"; readonly posted: readonly string[] }
  | { readonly type: "notFound" };

/** `request` is the request after the command: a conflict shows who decided first. */
export type DecideOutcome =
  | { readonly type: "decided"; readonly request: AgentRequest; readonly posted: readonly string[] }
  /** This decision was made before with the same key. */
  | { readonly type: "known"; readonly request: AgentRequest }
  /** The key means this turn, or another decision on this request. Nothing was changed. */
  | { readonly type: "taken"; readonly turnId: string; readonly requestId?: string | undefined }
  /** It was decided or closed before, or this decision came after its expiry and has made it expired. */
  | { readonly type: "conflict"; readonly request: AgentRequest; readonly posted: readonly string[] }
  /** The decision refers to other arguments than the request. Nothing was changed. */
  | { readonly type: "changed"; readonly request: AgentRequest }
  /** Requests of this kind do not take this verdict. Nothing was changed. */
  | { readonly type: "unfit"; readonly request: AgentRequest }
  | { readonly type: "notFound" };
