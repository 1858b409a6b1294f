import { DefectError } from "./troupe-error.ts";

/** A rule of this package was broken by this package. */
export class InvariantError extends DefectError {
  readonly code = "invariant";
}
