import { RejectionError } from "./troupe-error.ts";

/** A second turn was asked for while one is open: one turn at a time per agent (requirements, Concurrency). */
export class AgentBusyError extends RejectionError {
  readonly code = "agent_busy";
}
