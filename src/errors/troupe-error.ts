/** The four families tell a caller what to do with an error, without reading its text. */
export type ErrorFamily = "rejection" | "transient" | "terminal" | "defect";

/** Plain facts that travel with an error: JSON values only, never a secret. */
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

/** A command that was understood and refused; nothing was changed. */
export abstract class RejectionError extends TroupeError {
  readonly family = "rejection";
  readonly retryable = false;
}

/** A passing fault: the same command may work later. */
export abstract class TransientError extends TroupeError {
  readonly family = "transient";
  readonly retryable = true;
}

/** The work ended for good: a limit, a denial, a cancellation. */
export abstract class TerminalError extends TroupeError {
  readonly family = "terminal";
  readonly retryable = false;
}

/** A broken invariant of this package or of its store. */
export abstract class DefectError extends TroupeError {
  readonly family = "defect";
  readonly retryable = false;
}
