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
  SteerItem,
  Timer,
} from "../../state/index.ts";

export interface Committed {
  readonly type: "committed";
  /**
   * The entries as stored: granted intents have their reservation, refused ones have become `intent.refused`, saved artifacts have their
   * version.
   */
  readonly entries: readonly Entry[];
  readonly cursor: number;
  /** The previous cursor of the tree: no row is between it and `cursor`. `undefined` if the batch was applied before. */
  readonly follows?: number | undefined;
  readonly warnings: readonly (BudgetWarning & { readonly holder?: AccountHolder | undefined })[];
  /** Agents of the tree whose inbox got an item. */
  readonly posted: readonly string[];
  /** Timers that this commit set, so that the scheduler need not read them. */
  readonly timers: readonly Timer[];
  /** The changed accounts. `undefined` if the batch was applied before. */
  readonly accounts?: readonly Account[];
  /** The changed accounts of the owner above the root. `undefined` if there are none. */
  readonly above?: readonly Account[];
}

/**
 * The lease is lost, the journal has advanced, or the turn cannot be opened: the caller no longer owns the agent and discards its actors.
 */
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
  /** Start time in a system-specific unit, which distinguishes the process from a later one with the same pid. Default: unknown. */
  readonly startTime?: string | null | undefined;
  /** Name of the machine. Default: unknown. */
  readonly host?: string | undefined;
  /** Start time in milliseconds since the epoch. Default: unknown. */
  readonly startedAt?: number | undefined;
}

/** A process as stored. */
export interface RegisteredProcess extends ProcessIdentity {
  /** The last heartbeat, in steady time. An idle process sends one an hour. */
  readonly heartbeatAt: number;
  /** The difference between steady time and the `elapsed()` of the process's clock. */
  readonly clockOffset: number;
}

export type AcquireOutcome =
  | {
      readonly type: "acquired";
      readonly epoch: number;
      /** Seq of the last committed entry. */
      readonly seq: number;
      /** Time of the last entry; later entries must not be earlier. */
      readonly at: number;
      readonly record: AgentRecord;
    }
  | { readonly type: "held"; readonly by: ProcessIdentity; readonly epoch: number }
  /** The caller does not have the agent's definition. Nothing was changed. */
  | { readonly type: "unknown"; readonly definition: string }
  | { readonly type: "notFound" };

/** Timers of accounts; the agent's owner is not needed to handle them. */
export type AccountTimer = Extract<Timer, { kind: "limit" | "claim" }>;

/** The timer of a queued call that has not ended; the agent's owner is not needed to handle it. */
export type JobTimer = Extract<Timer, { kind: "job" }>;

export interface FiredTimer {
  /** Agents whose inbox got an item. */
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
  /** How long a process without a heartbeat is considered alive, in milliseconds. */
  readonly leaseMs: number;
}

export type CallClaimOutcome =
  /** The caller must run the call; `record` is the agent's record including the claim. */
  | { readonly type: "claimed"; readonly record: AgentRecord }
  /**
   * Another worker has started the call, which must not run twice. It may still be running only if `isAlive`. If the process was
   * forgotten since, `by` has pid 0 and an empty boot id.
   */
  | { readonly type: "taken"; readonly by: ProcessIdentity; readonly isAlive: boolean }
  /** A mark on the agent or above it forbids the call, until the pause ends or forever. */
  | { readonly type: "refused"; readonly reason: "paused" | "aborted" }
  /** The call has ended, was settled otherwise, or never existed. */
  | { readonly type: "over" };

export type SetBudgetOutcome =
  | {
      readonly type: "changed";
      readonly account: Account;
      /** The previous limits. */
      readonly before: Limits;
      /** Agents whose inbox got an item. */
      readonly posted: readonly string[];
      /** Timers that were set. */
      readonly timers: readonly Timer[];
    }
  /** The account already has these limits. */
  | { readonly type: "unchanged"; readonly account: Account }
  /** The agent has no lifetime account. */
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
      /** The process that held the agent when the turn was posted; `undefined` if there was none, or if unknown. */
      readonly holder?: ProcessIdentity | undefined;
    }
  /** The command was to open the agent's first turn, which exists already. */
  | { readonly type: "given"; readonly turnId: string }
  /** A turn with this key exists already. */
  | { readonly type: "known"; readonly turnId: string; readonly record: AgentRecord }
  /** The key belongs to a turn with other parameters, or to a decision on this request, made during the turn. */
  | { readonly type: "conflict"; readonly turnId: string; readonly requestId?: string | undefined }
  | { readonly type: "busy"; readonly openTurnId: string }
  | { readonly type: "refused"; readonly status: Lifecycle }
  | { readonly type: "notFound" };

/** The state of an input for an open turn. */
export interface SteerMeaning {
  /** `posted`: in the inbox. `taken`: part of the turn. `deferred`: it has opened the turn. */
  readonly steer: "posted" | "taken" | "deferred";
  readonly turnId: string;
  /** The step whose model call sees the input; `null` unless it was taken in. */
  readonly step: number | null;
  readonly hash: string;
}

/** The outcome of an input for an open turn: that of `openTurn`, unless it was posted to that turn. */
export type SteerOutcome =
  | {
      readonly type: "posted";
      /** The open turn. */
      readonly turnId: string;
      readonly item: SteerItem;
      readonly record: AgentRecord;
      readonly posted: readonly string[];
      readonly holder?: ProcessIdentity | undefined;
    }
  | OpenTurnOutcome;

/** A turn's agent, and the data of the turn's result once it has ended. */
export interface StoredLook {
  readonly record: AgentRecord;
  /** `undefined` while the turn is open, queued or not opened yet. */
  readonly past:
    | {
        /** The entries of the turn. */
        readonly entries: readonly Entry[];
        /** The message that the turn's end refers to. */
        readonly answer: Message | undefined;
        readonly account: Account | undefined;
      }
    | undefined;
}

/** Whether the command changed anything, and the agents whose inbox got an item. */
export type MarkOutcome =
  | { readonly type: "marked" | "unchanged"; readonly posted: readonly string[] }
  | { readonly type: "notFound" };

/** `request` is the request after the command, so a conflict shows who decided first. */
export type DecideOutcome =
  | { readonly type: "decided"; readonly request: AgentRequest; readonly posted: readonly string[] }
  /** This decision was made before with the same key. */
  | { readonly type: "known"; readonly request: AgentRequest }
  /** The key belongs to this turn, or to another decision on this request. Nothing was changed. */
  | { readonly type: "taken"; readonly turnId: string; readonly requestId?: string | undefined }
  /** It was decided or closed before, or this decision arrived after its expiry and has made it expired. */
  | { readonly type: "conflict"; readonly request: AgentRequest; readonly posted: readonly string[] }
  /** The decision refers to other arguments than the request. Nothing was changed. */
  | { readonly type: "changed"; readonly request: AgentRequest }
  /** Requests of this kind do not accept this verdict. Nothing was changed. */
  | { readonly type: "unfit"; readonly request: AgentRequest }
  | { readonly type: "notFound" };
