import { RejectionError } from "./troupe-error.ts";

/** A subagent was refused by the policy of its parent: depth, number, or a tool the parent does not have (row S8). */
export class PolicyRefusedError extends RejectionError {
  readonly code = "policy_refused";
}
