import { TroupeError } from "./troupe-error.ts";

/** A passing fault: the same command may work later. */
export abstract class TransientError extends TroupeError {
  readonly family = "transient";
  readonly retryable = true;
}

/** A commit was refused as stale: another owner has taken the agent over. */
export class LeaseLostError extends TransientError {
  readonly code = "lease_lost";
}

/** The store did not answer in time, was busy or full; nothing was half-written. */
export class StoreUnavailableError extends TransientError {
  readonly code = "store_unavailable";
}

/** The stores went back to an earlier state and lost writes that they had acknowledged. What was lost may be asked again. */
export class StoreRolledBackError extends TransientError {
  readonly code = "store_rolled_back";
}
