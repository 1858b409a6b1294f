import type { ModelRequest, ModelResponse } from "../state/index.ts";

/**
 * A piece of an answer while it is being generated. Ephemeral: never journalled. A tool call is reported by its name first, then by
 * pieces of the JSON text of its arguments; `index` is the position of the call among those of the answer, `id` the provider's id.
 */
export type ModelDelta =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "reasoning"; readonly text: string }
  | { readonly type: "tool-call"; readonly index: number; readonly id: string; readonly name: string }
  | { readonly type: "tool-arguments"; readonly index: number; readonly text: string };

/** Most tool calls in one answer. */
export const MOST_CALLS = 1_000;

/** The agent and the step for which a model is called. */
export interface ModelCallIdentity {
  /** The agent that calls. */
  readonly agentId: string;
  /** The agent at the root of the team. */
  readonly rootAgentId: string;
  /** The name of the agent's definition. */
  readonly agentName: string;
  /** The turn in which it calls. */
  readonly turnId: string;
  /** The step of the turn; for a call of a hook, a tool or a compaction the step in which it is made. */
  readonly step: number;
  /** 1 for the first attempt. */
  readonly attempt: number;
}

/** Options of `LanguageModel.generate`. */
export interface GenerateOptions {
  /** Ends the call when aborted; the promise then rejects with the signal's reason or a `ModelError`. */
  readonly signal: AbortSignal;
  /** If given, the answer is streamed and each piece is reported. If absent, an adapter may request an unstreamed answer. */
  readonly onDelta?: ((delta: ModelDelta) => void) | undefined;
  /** The agent and the step that the call is for, to route or to log it. Every call of a runtime has it. Default: unknown. */
  readonly call?: ModelCallIdentity | undefined;
}

/**
 * The port to a language model: one attempt of one call. The runtime retries, reserves and records.
 * Errors: `ModelError`, with `retryable`, `retryAfterMs`, `mayHaveBeenSent` and `partialOutputTokens` set by the adapter.
 */
export interface LanguageModel {
  /** Name for prices, traces and the journal, for instance `gpt-5-mini`. */
  readonly name: string;
  /** The provider, for instance `openai` or `offline`. */
  readonly provider: string;
  /** Tokens that prompt and answer may have together; `undefined` if unknown. */
  readonly contextWindow?: number | undefined;
  /**
   * Tools that the provider executes during an answer and bills by use, for instance `web_search`. Under a limit on cost such a model is
   * called only if its price has a `perCall`. Default: none.
   */
  readonly hostedTools?: readonly string[] | undefined;
  /** The server's address or another name for it: models of one provider and server share a circuit breaker. Default: none. */
  readonly server?: string | undefined;
  /** The result is checked: an unusable answer counts as a retryable `ModelError`; implausible usage is replaced by a count. */
  generate(request: ModelRequest, options: GenerateOptions): Promise<ModelResponse>;
  /**
   * The tokens of the prompt, as exactly as the adapter can count them. They are reserved before the call if a limit on tokens or cost
   * applies. `countPromptTokens(request)` of this package counts with a tokenizer.
   */
  countPromptTokens(request: ModelRequest): number | Promise<number>;
  /** An upper bound of the prompt's tokens, synchronously: reserved if a budget is `strict`. Default: the bytes of all its texts. */
  boundPromptTokens?(request: ModelRequest): number;
  /**
   * Whether the call may write cache entries of the longer lifetime that its provider offers (an hour for Anthropic, 12 hours for OpenAI):
   * their rate (`longCacheWritePerMillion`) is then reserved for the whole prompt. Default: it does not.
   */
  writesLongCache?(request: ModelRequest): boolean;
}
