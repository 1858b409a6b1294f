import { RejectionError } from "./troupe-error.ts";

/** A turn was asked of an agent that was not started, or was shut down: call `start()` first (row L2.4). */
export class AgentNotStartedError extends RejectionError {
  readonly code = "agent_not_started";
}
