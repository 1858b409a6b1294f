import { TroupeError } from "./troupe-error.ts";

/** The work has ended and is not tried again: a limit, a denial, a cancellation. */
export abstract class TerminalError extends TroupeError {
  readonly family = "terminal";
  readonly retryable = false;
}

/** Thrown by a hook or a tool to stop the turn with stop reason `stop_requested` (row S11). */
export class AgentStopError extends TerminalError {
  readonly code = "agent_stop";
}

/** Thrown by a `once` tool whose effect did not begin, so that the call ends as an error and not as `outcome_unknown`. */
export class ToolNotStartedError extends TerminalError {
  readonly code = "tool_not_started";
}

/** The turn ended before the awaited thing happened. */
export class TurnInterruptedError extends TerminalError {
  readonly code = "turn_interrupted";
}

/** The conversation does not fit the model's context window, and nothing is left to leave out. */
export class ContextTooLongError extends TerminalError {
  readonly code = "context_too_long";
}

/** `cancelled`: somebody asked for it. `timed_out`: it took longer than it may. `drained`: its worker leaves. */
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
