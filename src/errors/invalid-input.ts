import { RejectionError } from "./troupe-error.ts";

/** Input that does not fit its schema or its rule; the message says what, where, and what would be right. */
export class InvalidInputError extends RejectionError {
  readonly code = "invalid_input";
}
