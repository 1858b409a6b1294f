/** The family decides what a caller does with an error, without reading its message. */
export type ErrorFamily = "rejection" | "transient" | "terminal" | "defect";

/** Facts about an error: JSON values only, never a secret. */
export type ErrorDetails = Readonly<Record<string, string | number | boolean | null | undefined>>;

export interface TroupeErrorOptions {
  /** Facts for programs: JSON values, never a secret. Default: none. */
  readonly details?: ErrorDetails;
  /** The underlying error. Default: none. */
  readonly cause?: unknown;
}

/** Base of every error this package throws. Read `code`, `family` and `retryable`, not `message`. */
export abstract class TroupeError extends Error {
  abstract readonly code: string;
  abstract readonly family: ErrorFamily;
  /** Whether the same command may succeed when it is sent again unchanged. */
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

/** A stored record does not match its schema. The record is left unchanged. */
export class CorruptRecordError extends DefectError {
  readonly code = "corrupt_record";
}

/** A command was understood and refused; nothing was changed. */
export abstract class RejectionError extends TroupeError {
  readonly family = "rejection";
  readonly retryable = false;
}

/** The input violates a schema or a rule; the message names the field, the mistake and what is expected. */
export class InvalidInputError extends RejectionError {
  readonly code = "invalid_input";
  /** Mistakes by field, such as `items[2].name`, if single fields of the value are wrong; otherwise empty. */
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

/** Unknown agent, turn, definition, tool or artifact. */
export class NotFoundError extends RejectionError {
  readonly code = "not_found";
}

/** The agent was deleted with its tree. Its id cannot be used again. */
export class AgentDeletedError extends RejectionError {
  readonly code = "agent_deleted";
}

/** This version, mode or store does not support the requested operation. */
export class UnsupportedError extends RejectionError {
  readonly code = "unsupported";
}

/** A turn was requested of an agent that was not started, or was shut down: call `start()` first. */
export class AgentNotStartedError extends RejectionError {
  readonly code = "agent_not_started";
}

/** A turn was requested while the agent's previous turn is open: an agent runs one turn at a time. */
export class AgentBusyError extends RejectionError {
  readonly code = "agent_busy";
}

/** A turn was requested under the idempotency key of another turn. `details` name that turn. */
export class TurnConflictError extends RejectionError {
  readonly code = "turn_conflict";
}

/** Another living process holds the agent's lease. */
export class AlreadyOwnedError extends RejectionError {
  readonly code = "already_owned";
}

/**
 * A rule refuses the command: the parent's policy refuses a subagent because of its depth, their number or its tools; `mayDecide`
 * refuses a decision; a definition refuses client tools.
 */
export class PolicyRefusedError extends RejectionError {
  readonly code = "policy_refused";
}

/**
 * Another caller decided the request first, or the turn continued without a decision. `details` name the decision and its author.
 */
export class RequestConflictError extends RejectionError {
  readonly code = "request_conflict";
}

/** A temporary fault: the same command may succeed later. */
export abstract class TransientError extends TroupeError {
  readonly family = "transient";
  readonly retryable = true;
}

/** A commit was refused because another owner has taken over the agent. */
export class LeaseLostError extends TransientError {
  readonly code = "lease_lost";
}

/** The store timed out, was busy or was full; nothing was partially written. */
export class StoreUnavailableError extends TransientError {
  readonly code = "store_unavailable";
}

/** The stores returned to an earlier state and lost acknowledged writes. The caller may request the lost work again. */
export class StoreRolledBackError extends TransientError {
  readonly code = "store_rolled_back";
}

/** The work has ended and is not retried: a limit, a denial, a cancellation. */
export abstract class TerminalError extends TroupeError {
  readonly family = "terminal";
  readonly retryable = false;
}

/** Thrown by a hook or a tool to stop the turn with stop reason `stop_requested`. */
export class AgentStopError extends TerminalError {
  readonly code = "agent_stop";
}

/** Thrown by a `once` tool whose effect did not start: the call ends as an error instead of `outcome_unknown`. */
export class ToolNotStartedError extends TerminalError {
  readonly code = "tool_not_started";
}

/**
 * Thrown by a tool of any effect class that cannot determine whether its call took effect: the call ends as `outcome_unknown` and
 * is not repeated.
 */
export class OutcomeUnknownError extends TerminalError {
  readonly code = "outcome_unknown";
}

/** A session with stubs called a tool, and no stub answers the call. The tool did not run. */
export class StubMismatchError extends TerminalError {
  readonly code = "stub_mismatch";
}

/** The turn ended before the awaited event happened. */
export class TurnInterruptedError extends TerminalError {
  readonly code = "turn_interrupted";
}

/** The conversation does not fit the model's context window, and no further message can be left out. */
export class ContextTooLongError extends TerminalError {
  readonly code = "context_too_long";
}

/** `cancelled`: a caller cancelled the job. `timed_out`: it exceeded its time limit. `drained`: its worker is shutting down. */
export type JobStop = "cancelled" | "timed_out" | "drained";

/** The abort reason of a queued job's signal. */
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
  /** HTTP status, if the provider answered with one. Default: none. */
  readonly status?: number | undefined;
  /** Milliseconds to wait that the provider sent in `Retry-After`. Default: none. */
  readonly retryAfterMs?: number | undefined;
  /** False only if the request certainly did not reach the provider, so that nothing is billed. */
  readonly mayHaveBeenSent: boolean;
  /** For an interrupted answer: the prompt's tokens as reported or counted. Default: the tokens reserved for it. */
  readonly partialInputTokens?: number | undefined;
  /**
   * For an interrupted answer: the output tokens received so far, as counted here. Default: unknown; all reserved tokens count as
   * used.
   */
  readonly partialOutputTokens?: number | undefined;
}

/** A model call failed. The adapter alone decides whether it may be retried. */
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
