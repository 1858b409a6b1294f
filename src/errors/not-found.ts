import { RejectionError } from "./troupe-error.ts";

/** No agent, turn, definition, tool or artifact of that name is known. */
export class NotFoundError extends RejectionError {
  readonly code = "not_found";
}
