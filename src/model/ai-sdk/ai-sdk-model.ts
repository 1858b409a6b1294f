import type { FilePart, ModelRequest, ProviderOptions } from "../../state/index.ts";
import { AdapterModel, type CallContext, type ModelBackend, type PreparedCall } from "../adapter-model.ts";
import type { CallGuard } from "../call-guard.ts";
import type { GenerateOptions, LanguageModel } from "../language-model.ts";
import { formedPrompt } from "../prompt-form.ts";
import { asksForLongTtl, assertCacheTtl } from "../prompt-cache.ts";
import { type KnownFormats, knownFormatsOf, type StructuredOutput } from "../structured-output.ts";
import type { WireWriter } from "../wire-calls.ts";
import { wireObject, wireText } from "../wire-values.ts";
import { providerTtls, withCacheMarks } from "./cache-marks.ts";
import { ProviderAnswer } from "./provider-answer.ts";
import { providerFailure } from "./provider-failure.ts";
import { type AiSdkLanguageModel, type ProviderCall, streamOf } from "./provider-model.ts";
import { isProviderFile, providerPrompt, takesInResultOf, withCallsAsText } from "./provider-prompt.ts";
import { fieldsOf, settingsOf } from "./provider-settings.ts";

/** Options of `aiSdkModel()`. */
export interface AiSdkModelOptions {
  /** Name for prices, traces and the journal. Default: the model's `modelId`. */
  readonly name?: string | undefined;
  /** The provider, used in traces and to look up the price. Default: the model's `provider` up to its first point (`anthropic`). */
  readonly provider?: string | undefined;
  /** Tokens that prompt and answer may have together. Default: not known. */
  readonly contextWindow?: number | undefined;
  /** Sent with every call, by provider: `{ anthropic: { thinking: { type: "enabled", budgetTokens: 4096 } } }`. Default: none. */
  readonly providerOptions?: ProviderOptions | undefined;
  /** Longest silence inside an answer, from its first piece on, in milliseconds. Default 60,000. */
  readonly stallTimeoutMs?: number | undefined;
  /** Longest wait for the first piece of the answer, in milliseconds. Default: `requestTimeoutMs`. */
  readonly headersTimeoutMs?: number | undefined;
  /** Longest time for the whole call, in milliseconds. Default 600,000. */
  readonly requestTimeoutMs?: number | undefined;
  /** Tokens to reserve for an image. Default 2,500. */
  readonly imageTokens?: number | undefined;
  /** Tokens to reserve for a file that is sent as one. Default: 5,000 for each page of a PDF, 40 for each second of a WAV, else by size. */
  readonly fileTokens?: number | undefined;
  /** Further texts by which the provider refuses a prompt that is too long: parts of its messages, or patterns. Default: none. */
  readonly tooLongMessages?: readonly (string | RegExp)[] | undefined;
  /**
   * How an answer that fits a schema (`output`) is asked for: `jsonSchema` by the provider's own mode, `tool` by a final call of a tool
   * whose parameters are the schema, `jsonObject` by its JSON mode with the schema in the instructions, `prompt` by the instructions
   * alone. Default `auto`: the first of these that the provider neither refuses nor ignores. A call in another form that the provider
   * refuses fails with a `ModelError`.
   */
  readonly structuredOutput?: "auto" | StructuredOutput | undefined;
  /**
   * When the model's reasoning is sent back: `bound` only while everything before it is unchanged, `always` in any case. Default `auto`:
   * `bound` for Claude from version 5.1 on, which refuses it after a changed prefix; `always` for others.
   */
  readonly thinkingReplay?: "auto" | "bound" | "always" | undefined;
  /**
   * `auto` marks prompts for the provider's cache, where it needs that: Anthropic, Bedrock (Claude, Nova) and OpenRouter (Claude) get
   * marks, OpenAI the agent's id as its key. Other providers cache by themselves. `off` marks nothing. Default `auto`.
   */
  readonly cache?: "auto" | "off" | undefined;
  /**
   * How long the provider keeps what it has cached: `5m` or `1h` for marks in the form of Anthropic, `30m` or `12h` for OpenAI's Responses
   * from GPT-5.6 on. The longer ones are written at a higher rate (`longCacheWritePerMillion`). Default: the provider's, which is the
   * shorter one.
   */
  readonly cacheTtl?: "5m" | "30m" | "1h" | "12h" | undefined;
}

/** The model of a provider's package, as `aiSdkModel()` returns it. */
export function providerModel(model: AiSdkLanguageModel, options: AiSdkModelOptions): LanguageModel {
  assertCacheTtl(options, "aiSdkModel()", providerTtls(model));
  const name = options.name ?? model.modelId;
  const provider = options.provider ?? model.provider.split(".")[0] ?? model.provider;
  return new AdapterModel({ name, provider }, options, new ProviderBackend(model, { name, provider, options }));
}

interface ProviderIdentity {
  readonly name: string;
  readonly provider: string;
  readonly options: AiSdkModelOptions;
}

class ProviderBackend implements ModelBackend {
  readonly keyAdvice = "check the API key of the provider";
  readonly #model: AiSdkLanguageModel;
  readonly #options: AiSdkModelOptions;
  readonly #adapter: WireWriter;

  constructor(model: AiSdkLanguageModel, { name, provider, options }: ProviderIdentity) {
    this.#model = model;
    this.#options = options;
    this.#adapter = Object.freeze({ provider, model: name, server: model.provider });
  }

  get modelId(): string {
    return this.#model.modelId;
  }

  adapter(): WireWriter {
    return this.#adapter;
  }

  writesLongCache({ providerOptions }: ModelRequest): boolean {
    return asksForLongTtl(this.#options.cacheTtl, this.#options.providerOptions, providerOptions);
  }

  /** Bedrock has no choice `none`: its package leaves out the tools, on which thinking may depend. */
  carried(request: ModelRequest): ModelRequest {
    const { toolChoice, tools: _tools, ...others } = request;
    return toolChoice === "none" && isBedrock(this.#model) ? others : request;
  }

  takesFile(part: FilePart): boolean {
    return isProviderFile(part, this.#model.provider);
  }

  knownFormats(): KnownFormats {
    return knownFormatsOf(this.#model.provider, this.#model.modelId);
  }

  async prepare(request: ModelRequest, { agentId }: CallContext): Promise<PreparedCall> {
    const prompt = await this.#prompt(request);
    const { settings, warnings } = settingsOf(request, this.#model, this.#options.providerOptions);
    const { cache, cacheTtl } = this.#options;
    const fields = withCacheMarks({ prompt, ...fieldsOf(request, this.#model.provider), ...settings }, this.#model, {
      cache,
      cacheTtl,
      agentId,
    });
    const progress = new ProviderAnswer(warnings);
    return {
      isStreamed: true,
      progress,
      exchange: async (guard, onDelta) => {
        try {
          const call = { abortSignal: guard.signal, ...fields };
          await readStream(await streamOf(this.#model, call), progress, { guard, onDelta });
        } catch (error) {
          throw providerFailure(error);
        }
        if (progress.fault !== undefined) throw progress.fault;
        if (progress.ignoresFormat && request.responseFormat?.type === "json_schema") {
          this.knownFormats().refused(request, "jsonSchema");
        }
      },
      // A call that is refused before its stream begins is not billed.
      isCountable: (guard) => guard.wasSent === true,
      secrets: () => [],
    };
  }

  async #prompt(request: ModelRequest): Promise<ProviderCall["prompt"]> {
    const { specificationVersion: specification, supportedUrls, provider } = this.#model;
    const formed = formedPrompt(request, {
      reader: this.#adapter,
      keepsForeignIds: false,
      takesInResult: takesInResultOf(this.#model.provider),
    });
    // The package removes calls and results from a prompt without tools.
    const isText = isBedrock(this.#model) && (request.tools ?? []).length === 0;
    return providerPrompt(isText ? withCallsAsText(formed) : formed, {
      specification,
      supportedUrls: fetchesNothing.test(provider) ? {} : await supportedUrls,
    });
  }
}

function isBedrock({ provider }: AiSdkLanguageModel): boolean {
  return provider === "amazon-bedrock";
}

/** Packages that declare addresses as supported, although the server does not fetch them. */
const fetchesNothing = /^ollama\b/;

interface Reading {
  readonly guard: CallGuard;
  readonly onDelta: GenerateOptions["onDelta"];
}

/** Parts that come before the model has written anything. */
const preliminary: ReadonlySet<string> = new Set(["stream-start", "response-metadata"]);

async function readStream(
  { stream }: { readonly stream: ReadableStream<unknown> },
  progress: ProviderAnswer,
  { guard, onDelta }: Reading,
): Promise<void> {
  const reader = stream.getReader();
  const cancel = (): void => void reader.cancel(guard.signal.reason).catch(() => undefined);
  guard.signal.addEventListener("abort", cancel, { once: true });
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      guard.wasSent = true;
      progress.add(value, onDelta);
      if (progress.isFinished) guard.expectEnd();
      else if (!preliminary.has(wireText(wireObject(value)?.["type"]))) guard.heard();
    }
  } catch (error) {
    cancel();
    throw error;
  } finally {
    guard.signal.removeEventListener("abort", cancel);
  }
}
