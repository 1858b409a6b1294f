import { TransientError } from "./troupe-error.ts";

/**
 * The stores have lost what they had acknowledged: they stand as they did some time before. What was asked in between is not
 * there any more, and may be asked again.
 */
export class StoreRolledBackError extends TransientError {
  readonly code = "store_rolled_back";
}
