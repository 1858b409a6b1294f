import { RejectionError } from "./troupe-error.ts";

/** Another living process holds the agent's lease. */
export class AlreadyOwnedError extends RejectionError {
  readonly code = "already_owned";
}
