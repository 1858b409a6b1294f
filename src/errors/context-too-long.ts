import { TerminalError } from "./troupe-error.ts";

/** The conversation does not fit the model's context window, and there is nothing left to leave out. */
export class ContextTooLongError extends TerminalError {
  readonly code = "context_too_long";
}
