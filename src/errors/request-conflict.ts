import { RejectionError } from "./troupe-error.ts";

/** Somebody else decided the request first, or its turn has gone on without it. `details` tell who and how. */
export class RequestConflictError extends RejectionError {
  readonly code = "request_conflict";
}
