import { TroupeError, type TroupeErrorOptions } from "./troupe-error.ts";

export interface ModelErrorOptions extends TroupeErrorOptions {
  /** Whether another attempt may succeed: 408, 409, 429, 5xx, cut or stalled streams, malformed JSON. */
  readonly retryable: boolean;
  /** HTTP status, where there was one. */
  readonly status?: number | undefined;
  /** Milliseconds the provider asked to wait (`Retry-After`), where it did. */
  readonly retryAfterMs?: number | undefined;
  /** False only if the request cannot have reached the provider, so that nothing is billed. */
  readonly mayHaveBeenSent: boolean;
  /** Of a cut answer: the prompt's tokens as reported or counted. Default: the tokens reserved for it. */
  readonly partialInputTokens?: number | undefined;
  /** Of a cut answer: the output tokens that had arrived, as counted here. */
  readonly partialOutputTokens?: number | undefined;
}

/** A model call failed. The adapter alone decides whether another attempt is worth it. */
export class ModelError extends TroupeError {
  readonly code = "model_error";
  readonly family: "transient" | "terminal";
  readonly retryable: boolean;
  readonly status: number | undefined;
  readonly retryAfterMs: number | undefined;
  readonly mayHaveBeenSent: boolean;
  readonly partialInputTokens: number | undefined;
  readonly partialOutputTokens: number | undefined;

  constructor(message: string, options: ModelErrorOptions) {
    super(message, options);
    this.family = options.retryable ? "transient" : "terminal";
    this.retryable = options.retryable;
    this.status = options.status;
    this.retryAfterMs = options.retryAfterMs;
    this.mayHaveBeenSent = options.mayHaveBeenSent;
    this.partialInputTokens = options.partialInputTokens;
    this.partialOutputTokens = options.partialOutputTokens;
  }
}
