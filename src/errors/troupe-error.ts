/** The family tells a caller what to do with an error, without reading its text. */
export type ErrorFamily = "rejection" | "transient" | "terminal" | "defect";

/** Facts about an error: JSON values only, never a secret. */
export type ErrorDetails = Readonly<Record<string, string | number | boolean | null | undefined>>;

export interface TroupeErrorOptions {
  /** Facts for programs: JSON values, never a secret. Default: none. */
  readonly details?: ErrorDetails;
  /** The error that led to this one. Default: none. */
  readonly cause?: unknown;
}

/** Base of every error this package throws. Read `code`, `family` and `retryable`, not `message`. */
export abstract class TroupeError extends Error {
  abstract readonly code: string;
  abstract readonly family: ErrorFamily;
  /** Whether the same command may succeed when it is sent again, unchanged. */
  abstract readonly retryable: boolean;
  readonly details: ErrorDetails;

  constructor(message: string, options: TroupeErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = new.target.name;
    this.details = options.details ?? {};
  }
}

/** A broken invariant of this package or of its store. */
export abstract class DefectError extends TroupeError {
  readonly family = "defect";
  readonly retryable = false;
}

/** This package broke one of its own rules. */
export class InvariantError extends DefectError {
  readonly code = "invariant";
}

/** A stored record does not fit its schema; it is left as it is. */
export class CorruptRecordError extends DefectError {
  readonly code = "corrupt_record";
}

/** A command that was understood and refused; nothing was changed. */
export abstract class RejectionError extends TroupeError {
  readonly family = "rejection";
  readonly retryable = false;
}

/** The input breaks a schema or a rule; the message says where, how, and what would be right. */
export class InvalidInputError extends RejectionError {
  readonly code = "invalid_input";
  /** Mistakes by field, such as `items[2].name`, where the fields of a value are to blame; else empty. */
  readonly issues: readonly { readonly path: string; readonly message: string }[];

  constructor(
    message: string,
    {
      issues = [],
      ...options
    }: TroupeErrorOptions & { readonly issues?: InvalidInputError["issues"] | undefined } = {},
  ) {
    super(message, options);
    this.issues = issues;
  }
}

/** No agent, turn, definition, tool or artifact of that name is known. */
export class NotFoundError extends RejectionError {
  readonly code = "not_found";
}

/** This version, mode or store does not support what was asked for. */
export class UnsupportedError extends RejectionError {
  readonly code = "unsupported";
}

/** A turn was asked of an agent that was not started, or was shut down: call `start()` first. */
export class AgentNotStartedError extends RejectionError {
  readonly code = "agent_not_started";
}

/** A turn was asked of an agent whose turn is open: one turn at a time per agent. */
export class AgentBusyError extends RejectionError {
  readonly code = "agent_busy";
}

/** A turn was asked of an agent under the key of another turn. `details` name that turn. */
export class TurnConflictError extends RejectionError {
  readonly code = "turn_conflict";
}

/** Another living process holds the agent's lease. */
export class AlreadyOwnedError extends RejectionError {
  readonly code = "already_owned";
}

/**
 * A rule refuses it: the parent's policy a subagent, by depth, number, or a tool the parent does not have;
 * `mayDecide` a decision; a definition the tools of a client.
 */
export class PolicyRefusedError extends RejectionError {
  readonly code = "policy_refused";
}

/** Another caller decided the request first, or its turn has gone on without it. `details` name the decision and its author. */
export class RequestConflictError extends RejectionError {
  readonly code = "request_conflict";
}

/** A passing fault: the same command may work later. */
export abstract class TransientError extends TroupeError {
  readonly family = "transient";
  readonly retryable = true;
}

/** A commit was refused as stale: another owner has taken the agent over. */
export class LeaseLostError extends TransientError {
  readonly code = "lease_lost";
}

/** The store did not answer in time, was busy or full; nothing was half-written. */
export class StoreUnavailableError extends TransientError {
  readonly code = "store_unavailable";
}

/** The stores went back to an earlier state and lost writes that they had acknowledged. What was lost may be asked again. */
export class StoreRolledBackError extends TransientError {
  readonly code = "store_rolled_back";
}

/** The work has ended and is not tried again: a limit, a denial, a cancellation. */
export abstract class TerminalError extends TroupeError {
  readonly family = "terminal";
  readonly retryable = false;
}

/** Thrown by a hook or a tool to stop the turn with stop reason `stop_requested`. */
export class AgentStopError extends TerminalError {
  readonly code = "agent_stop";
}

/** Thrown by a `once` tool whose effect did not begin, so that the call ends as an error and not as `outcome_unknown`. */
export class ToolNotStartedError extends TerminalError {
  readonly code = "tool_not_started";
}

/**
 * Thrown by a tool of any effect class that cannot know whether its call took effect: the call ends as `outcome_unknown`, and is
 * not repeated.
 */
export class OutcomeUnknownError extends TerminalError {
  readonly code = "outcome_unknown";
}

/** The turn ended before the awaited thing happened. */
export class TurnInterruptedError extends TerminalError {
  readonly code = "turn_interrupted";
}

/** The conversation does not fit the model's context window, and nothing is left to leave out. */
export class ContextTooLongError extends TerminalError {
  readonly code = "context_too_long";
}

/** `cancelled`: a caller asked for it. `timed_out`: it took longer than it may. `drained`: its worker leaves. */
export type JobStop = "cancelled" | "timed_out" | "drained";

/** The reason with which a queued job's signal is aborted. */
export class JobStoppedError extends TerminalError {
  readonly code = "job_stopped";
  readonly why: JobStop;

  constructor(why: JobStop, message: string) {
    super(message, { details: { why } });
    this.why = why;
  }
}

export interface ModelErrorOptions extends TroupeErrorOptions {
  /** Whether another attempt may succeed: 408, 409, 429, 5xx, cut or stalled streams, malformed JSON. */
  readonly retryable: boolean;
  /** HTTP status, where there was one. Default: none. */
  readonly status?: number | undefined;
  /** Milliseconds the provider asked to wait (`Retry-After`), where it did. Default: none. */
  readonly retryAfterMs?: number | undefined;
  /** False only if the request cannot have reached the provider, so that nothing is billed. */
  readonly mayHaveBeenSent: boolean;
  /** Of a cut answer: the prompt's tokens as reported or counted. Default: the tokens reserved for it. */
  readonly partialInputTokens?: number | undefined;
  /**
   * Of a cut answer: the output tokens that had arrived, as counted here. Default: not known, so that all that was
   * reserved counts.
   */
  readonly partialOutputTokens?: number | undefined;
}

/** A model call failed. The adapter alone decides whether another attempt is worth it. */
export class ModelError extends TroupeError {
  readonly code = "model_error";
  readonly family: "transient" | "terminal";
  readonly retryable: boolean;
  readonly status: number | undefined;
  readonly retryAfterMs: number | undefined;
  readonly mayHaveBeenSent: boolean;
  readonly partialInputTokens: number | undefined;
  readonly partialOutputTokens: number | undefined;

  constructor(message: string, options: ModelErrorOptions) {
    super(message, options);
    this.family = options.retryable ? "transient" : "terminal";
    this.retryable = options.retryable;
    this.status = options.status;
    this.retryAfterMs = options.retryAfterMs;
    this.mayHaveBeenSent = options.mayHaveBeenSent;
    this.partialInputTokens = options.partialInputTokens;
    this.partialOutputTokens = options.partialOutputTokens;
  }
}
