/** The family tells a caller what to do with an error, without reading its text. */
export type ErrorFamily = "rejection" | "transient" | "terminal" | "defect";

/** Facts about an error: JSON values only, never a secret. */
export type ErrorDetails = Readonly<Record<string, string | number | boolean | null | undefined>>;

export interface TroupeErrorOptions {
  readonly details?: ErrorDetails;
  readonly cause?: unknown;
}

/** Base of every error this package throws. Read `code`, `family` and `retryable`, not `message`. */
export abstract class TroupeError extends Error {
  abstract readonly code: string;
  abstract readonly family: ErrorFamily;
  /** Whether the same command may succeed when it is sent again, unchanged. */
  abstract readonly retryable: boolean;
  readonly details: ErrorDetails;

  constructor(message: string, options: TroupeErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = new.target.name;
    this.details = options.details ?? {};
  }
}

/** A broken invariant of this package or of its store. */
export abstract class DefectError extends TroupeError {
  readonly family = "defect";
  readonly retryable = false;
}

/** This package broke one of its own rules. */
export class InvariantError extends DefectError {
  readonly code = "invariant";
}

/** A stored record does not fit its schema; it is left as it is. */
export class CorruptRecordError extends DefectError {
  readonly code = "corrupt_record";
}
