import { TerminalError } from "./troupe-error.ts";

/** The turn ended before the awaited thing happened. */
export class TurnInterruptedError extends TerminalError {
  readonly code = "turn_interrupted";
}
