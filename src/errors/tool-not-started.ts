import { TerminalError } from "./troupe-error.ts";

/** Thrown by a `once` tool to say that its effect surely did not begin, so that the call is a plain error and not `outcome_unknown`. */
export class ToolNotStartedError extends TerminalError {
  readonly code = "tool_not_started";
}
