import { ModelError } from "../errors/index.ts";
import type { FilePart, ModelRequest, ModelResponse, Usage } from "../state/index.ts";
import { bindThinking, thinkingReplayOf } from "./bound-thinking.ts";
import { CallGuard } from "./call-guard.ts";
import { fileTokensOf, MOST_FILE_TOKENS } from "./file-tokens.ts";
import { FormFallback } from "./form-fallback.ts";
import { type AnswerInProgress, guardedCall } from "./guarded-call.ts";
import type { GenerateOptions, LanguageModel, ModelDelta } from "./language-model.ts";
import { type AdapterOptions, defaultRequestTimeoutMs } from "./model-option-rules.ts";
import type { KnownFormats, StructuredOutput } from "./structured-output.ts";
import { countPromptTokens, promptByteBound } from "./token-count.ts";
import type { WireWriter } from "./wire-calls.ts";

/** One call, ready to be sent. */
export interface PreparedCall {
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

/** The caller of a prepared call. */
export interface CallContext {
  /** Whether pieces of the answer are reported. */
  readonly isListened: boolean;
  /** The agent that calls, by whose id providers cache its prompts; `undefined` outside of a runtime. */
  readonly agentId: string | undefined;
}

/** The server of a model and the protocol that it speaks. */
export interface ModelBackend {
  /** The provider's name of the model. */
  readonly modelId: string;
  /** The model and its server, as stored in messages. */
  adapter(): WireWriter | Promise<WireWriter>;
  /** The formats that the server accepts for this model. */
  knownFormats(): KnownFormats | Promise<KnownFormats>;
  /** The request as the protocol can carry it. Default: the request. */
  carried?(request: ModelRequest): ModelRequest;
  /** Overrides the option `structuredOutput`. */
  fixedFormat?(request: ModelRequest): StructuredOutput | undefined;
  /** Whether the protocol can carry the file; text files are sent as text. Default: it carries none. */
  takesFile?(part: FilePart): boolean;
  /**
   * Translates the request.
   * @throws ModelError that was not sent, if the request or the configuration cannot be sent.
   */
  prepare(request: ModelRequest, context: CallContext): Promise<PreparedCall>;
  /** Whether the call may write cache entries of the longer lifetime. */
  writesLongCache(request: ModelRequest): boolean;
  /** Tools that the server executes itself during an answer. Default: none. */
  readonly hostedTools?: readonly string[] | undefined;
  /** Called with a failure. True if calls take another form from now on, so that this one is worth repeating once. */
  adaptTo?(failure: ModelError): boolean;
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
  readonly hostedTools: readonly string[];
  readonly server: string | undefined;
  readonly #options: AdapterOptions;
  readonly #backend: ModelBackend;
  readonly #bindsThinking: boolean;
  readonly #forms: FormFallback;

  constructor({ name, provider, server }: Identity, options: AdapterOptions, backend: ModelBackend) {
    this.name = name;
    this.provider = provider;
    this.server = server;
    this.contextWindow = options.contextWindow;
    this.hostedTools = backend.hostedTools ?? [];
    this.#options = options;
    this.#backend = backend;
    this.#bindsThinking = thinkingReplayOf(backend.modelId, options.thinkingReplay) === "bound";
    const isBounded = (part: FilePart): boolean =>
      options.fileTokens !== undefined || fileTokensOf(part) <= MOST_FILE_TOKENS;
    this.#forms = new FormFallback((part) => backend.takesFile?.(part) === true && isBounded(part));
  }

  countPromptTokens(request: ModelRequest): number | Promise<number> {
    return countPromptTokens(this.#forms.prepared(request), this.#options);
  }

  boundPromptTokens(request: ModelRequest): number {
    return promptByteBound(this.#forms.prepared(request), this.#options);
  }

  async generate(request: ModelRequest, options: GenerateOptions): Promise<ModelResponse> {
    const { structuredOutput = "auto" } = this.#options;
    const asked = this.#backend.fixedFormat?.(request) ?? structuredOutput;
    return await this.#forms.call(request, {
      structuredOutput: asked,
      known: () => this.#backend.knownFormats(),
      onDelta: options.onDelta,
      send: (formed, onDelta) => this.#adapting(formed, { ...options, onDelta }),
    });
  }

  writesLongCache(request: ModelRequest): boolean {
    return this.#backend.writesLongCache(request);
  }

  async #adapting(request: ModelRequest, options: GenerateOptions): Promise<ModelResponse> {
    try {
      return await this.#attempt(request, options);
    } catch (error) {
      const isAdapted = error instanceof ModelError && this.#backend.adaptTo?.(error) === true;
      if (!isAdapted) throw error;
      return await this.#attempt(request, options);
    }
  }

  async #attempt(given: ModelRequest, { signal, onDelta, call: caller }: GenerateOptions): Promise<ModelResponse> {
    const adapter = await this.#backend.adapter();
    const formed = this.#backend.carried?.(given) ?? given;
    const bound = this.#bindsThinking ? bindThinking(formed, adapter) : undefined;
    const request = bound?.request ?? formed;
    const context = { isListened: onDelta !== undefined, agentId: caller?.agentId };
    const call = await this.#backend.prepare(request, context);
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
    const usage = this.#backend.writesLongCache(request) ? asLongWrites(answer.usage) : answer.usage;
    return { ...answer, usage, adapter, ...(bound ? { prefixHash: bound.hashOf(answer) } : {}) };
  }
}

/** Few providers report the lifetimes of cache writes, so all of them count as the lifetime that was requested. */
function asLongWrites(usage: Usage): Usage {
  const { cacheWriteTokens: written, longCacheWriteTokens: long = written } = usage;
  return long === undefined ? usage : { ...usage, longCacheWriteTokens: long };
}

function notSent(signal: AbortSignal): ModelError {
  return new ModelError("The model call was aborted before it was sent.", {
    retryable: false,
    mayHaveBeenSent: false,
    cause: signal.reason,
    details: { kind: "aborted" },
  });
}

/** Whether calls of this very model go to a server over the network, as far as this package can tell: it is one of its own adapters. */
export function callsServer(model: LanguageModel): boolean {
  return model instanceof AdapterModel;
}
