import { TransientError } from "./troupe-error.ts";

/** A commit was refused as stale: another owner has taken the agent over. */
export class LeaseLostError extends TransientError {
  readonly code = "lease_lost";
}
