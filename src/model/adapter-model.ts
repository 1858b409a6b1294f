import { ModelError } from "../errors/index.ts";
import type { ModelRequest, ModelResponse } from "../state/index.ts";
import { CallGuard } from "./call-guard.ts";
import { FormFallback } from "./form-fallback.ts";
import { type AnswerInProgress, guardedCall } from "./guarded-call.ts";
import type { GenerateOptions, LanguageModel, ModelDelta } from "./language-model.ts";
import { type AdapterOptions, defaultRequestTimeoutMs } from "./model-option-rules.ts";
import type { KnownFormats, StructuredOutput } from "./structured-output.ts";
import { countPromptTokens, imageTokenBound, promptByteBound } from "./token-count.ts";
import type { WireWriter } from "./wire-calls.ts";

/** One call, ready to be sent. */
export interface PreparedCall {
  readonly adapter: WireWriter;
  /** Whether the answer is requested as a stream, so that `headersTimeoutMs` applies. */
  readonly isStreamed: boolean;
  /** The answer, empty until `exchange` is called. */
  readonly progress: AnswerInProgress;
  /** Sends the request and adds the answer to `progress`. */
  exchange(guard: CallGuard, onDelta: ((delta: ModelDelta) => void) | undefined): Promise<void>;
  /** Whether the cost of an answer that was cut can be counted by what has arrived. */
  isCountable(guard: CallGuard): boolean;
  /** Keys that must not appear in messages. */
  secrets(): readonly string[];
}

/** The server of a model and the protocol that it speaks. */
export interface ModelBackend {
  /** The formats that the server accepts for this model. */
  knownFormats(): KnownFormats | Promise<KnownFormats>;
  /** Overrides the option `structuredOutput`. */
  fixedFormat?(request: ModelRequest): StructuredOutput | undefined;
  /**
   * Translates the request.
   * @throws ModelError that was not sent, if the request or the configuration cannot be sent.
   */
  prepare(request: ModelRequest, isListened: boolean): Promise<PreparedCall>;
  /** How to mend a refused key. Default: for `openaiModel`. */
  readonly keyAdvice?: string;
}

interface Identity {
  readonly name: string;
  readonly provider: string;
  readonly server?: string | undefined;
}

/**
 * A model behind a backend. Counts prompts, applies the limits of time, asks for structured output in a form that the server accepts, and
 * turns failures into `ModelError`; the backend translates and sends.
 */
export class AdapterModel implements LanguageModel {
  readonly name: string;
  readonly provider: string;
  readonly contextWindow: number | undefined;
  readonly server: string | undefined;
  readonly #options: AdapterOptions;
  readonly #backend: ModelBackend;
  readonly #imageTokens: number;
  readonly #forms = new FormFallback();

  constructor({ name, provider, server }: Identity, options: AdapterOptions, backend: ModelBackend) {
    this.name = name;
    this.provider = provider;
    this.server = server;
    this.contextWindow = options.contextWindow;
    this.#options = options;
    this.#backend = backend;
    this.#imageTokens = options.imageTokens ?? imageTokenBound;
  }

  countPromptTokens(request: ModelRequest): number | Promise<number> {
    return countPromptTokens(request, this.#imageTokens);
  }

  boundPromptTokens(request: ModelRequest): number {
    return promptByteBound(request, this.#imageTokens);
  }

  async generate(request: ModelRequest, options: GenerateOptions): Promise<ModelResponse> {
    const { structuredOutput = "auto" } = this.#options;
    const asked = this.#backend.fixedFormat?.(request) ?? structuredOutput;
    return await this.#forms.call(request, {
      structuredOutput: asked,
      known: () => this.#backend.knownFormats(),
      onDelta: options.onDelta,
      send: (formed, onDelta) => this.#attempt(formed, { ...options, onDelta }),
    });
  }

  async #attempt(request: ModelRequest, { signal, onDelta }: GenerateOptions): Promise<ModelResponse> {
    const call = await this.#backend.prepare(request, onDelta !== undefined);
    if (signal.aborted) throw notSent(signal);
    const { requestTimeoutMs = defaultRequestTimeoutMs, headersTimeoutMs, stallTimeoutMs = 60_000 } = this.#options;
    const guard = new CallGuard(signal, {
      requestTimeoutMs,
      headersTimeoutMs: call.isStreamed ? headersTimeoutMs : undefined,
      stallTimeoutMs,
    });
    const answer = await guardedCall({
      model: this.name,
      request,
      signal,
      guard,
      progress: call.progress,
      exchange: () => call.exchange(guard, onDelta),
      countPrompt: (counted) => this.countPromptTokens(counted),
      isCountable: () => call.isCountable(guard),
      secrets: () => call.secrets(),
      tooLongMessages: this.#options.tooLongMessages,
      keyAdvice: this.#backend.keyAdvice,
    });
    return { ...answer, adapter: call.adapter };
  }
}

function notSent(signal: AbortSignal): ModelError {
  return new ModelError("The model call was aborted before it was sent.", {
    retryable: false,
    mayHaveBeenSent: false,
    cause: signal.reason,
    details: { kind: "aborted" },
  });
}
