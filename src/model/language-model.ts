import type { ModelRequest, ModelResponse } from "../state/index.ts";

/** A piece of an answer while it is being generated. Ephemeral: never journalled. */
export type ModelDelta =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "reasoning"; readonly text: string };

export interface GenerateOptions {
  /** Aborting it ends the call; the promise then rejects with the signal's reason or a `ModelError`. */
  readonly signal: AbortSignal;
  /** When given, the answer is streamed and each piece reported. When absent, an adapter may ask for one whole answer. */
  readonly onDelta?: ((delta: ModelDelta) => void) | undefined;
}

/**
 * The port to a language model: one attempt of one call. It does not retry, reserve, or record: the runtime does.
 * Errors: `ModelError`, with `retryable`, `retryAfterMs`, `mayHaveBeenSent` and `partialOutputTokens` set by the adapter.
 */
export interface LanguageModel {
  /** Name for prices, traces and journals, for instance `gpt-5-mini`. */
  readonly name: string;
  /** Who serves it, for instance `openai` or `offline`. */
  readonly provider: string;
  /** Tokens that prompt and answer may have together; absent: unknown. */
  readonly contextWindow?: number | undefined;
  /**
   * What it gives is checked: an answer that cannot be used counts as a `ModelError` that may be tried again, usage that cannot be
   * true is counted here.
   */
  generate(request: ModelRequest, options: GenerateOptions): Promise<ModelResponse>;
  /**
   * The prompt's tokens, as close as the adapter can count them: what is reserved before the call where a limit on tokens or cost
   * binds. `countPromptTokens(request)` of this package counts with a tokenizer.
   */
  countPromptTokens(request: ModelRequest): number | Promise<number>;
  /** What the prompt's tokens cannot exceed, at once: reserved where a budget is `strict`. Default: the bytes of all its texts. */
  boundPromptTokens?(request: ModelRequest): number;
}
