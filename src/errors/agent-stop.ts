import { TerminalError } from "./troupe-error.ts";

/** Thrown by a hook or a tool to stop the turn with stop reason `stop_requested` (row S11). */
export class AgentStopError extends TerminalError {
  readonly code = "agent_stop";
}
