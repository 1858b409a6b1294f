import { DefectError } from "./troupe-error.ts";

/** A stored record does not fit its schema; it is left as it is. */
export class CorruptRecordError extends DefectError {
  readonly code = "corrupt_record";
}
