import type { Json } from "../state/index.ts";

/** Fields of a client error. */
export interface ClientErrorOptions {
  /** HTTP status of the answer, or `null` without an answer. Default `null`. */
  readonly status?: number | null;
  /** Whether the unchanged request may succeed later. Default false. */
  readonly retryable?: boolean;
  /** Further details, as JSON. Default `{}`. */
  readonly details?: Readonly<Record<string, Json>>;
  /** Id of the request. Default null. */
  readonly requestId?: string | null;
  /** The cause. Default: none. */
  readonly cause?: unknown;
}

/**
 * The error of all functions of the client. Exception: after an abort of `signal` they reject with the signal's own
 * reason.
 *
 * `code` is the server's (`not_found`, `agent_busy`, `rate_limited`, …) or one of the client's: `invalid_input`
 * (nothing was sent), `unreachable` (the server did not answer), `unexpected_answer` (the answer did not come from
 * troupe).
 */
export class TroupeClientError extends Error {
  override readonly name = "TroupeClientError";
  readonly code: string;
  /** HTTP status of the answer, or `null` without an answer. */
  readonly status: number | null;
  /** Whether the unchanged request may succeed later. */
  readonly retryable: boolean;
  readonly details: Readonly<Record<string, Json>>;
  /** `x-request-id` of the answer, which is also in the server's log; `null` without an answer. */
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
