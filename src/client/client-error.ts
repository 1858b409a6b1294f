import type { Json } from "../state/index.ts";

/** What an error of the client is made of. */
export interface ClientErrorOptions {
  /** HTTP status of the answer, or `null` without an answer. Default `null`. */
  readonly status?: number | null;
  /** Default false. */
  readonly retryable?: boolean;
  /** Default `{}`. */
  readonly details?: Readonly<Record<string, Json>>;
  /** Default null. */
  readonly requestId?: string | null;
  /** The error behind it. Default: none. */
  readonly cause?: unknown;
}

/**
 * The error of every function of the client. An aborted `signal` is the exception: it rejects with the signal's own reason.
 *
 * `code` is the server's (`not_found`, `agent_busy`, `rate_limited`, …) or one of the client's: `invalid_input` (nothing
 * was sent), `unreachable` (the server did not answer), `unexpected_answer` (something else than troupe answered).
 */
export class TroupeClientError extends Error {
  override readonly name = "TroupeClientError";
  readonly code: string;
  /** HTTP status of the answer, or `null` without an answer. */
  readonly status: number | null;
  /** Whether the same request may succeed later, unchanged. */
  readonly retryable: boolean;
  readonly details: Readonly<Record<string, Json>>;
  /** `x-request-id` of the answer, which the server's log line has too; `null` without an answer. */
  readonly requestId: string | null;

  constructor(code: string, message: string, options: ClientErrorOptions = {}) {
    super(message, options.cause === undefined ? {} : { cause: options.cause });
    this.code = code;
    this.status = options.status ?? null;
    this.retryable = options.retryable ?? false;
    this.details = options.details ?? {};
    this.requestId = options.requestId ?? null;
  }
}
