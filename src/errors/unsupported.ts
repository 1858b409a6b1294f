import { RejectionError } from "./troupe-error.ts";

/** What was asked for does not exist in this version, in this mode, or with these stores. */
export class UnsupportedError extends RejectionError {
  readonly code = "unsupported";
}
