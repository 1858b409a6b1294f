import { TransientError } from "./troupe-error.ts";

/** The store did not answer in time, was busy or full; nothing was half-written. */
export class StoreUnavailableError extends TransientError {
  readonly code = "store_unavailable";
}
