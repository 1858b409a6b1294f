import { ModelError } from "../../errors/index.ts";
import {
  type FilePart,
  type JsonObject,
  mergedOptions,
  type ModelRequest,
  type ModelWarning,
  type ProviderOptions,
  type ReasoningEffort,
  type ToolChoice,
} from "../../state/index.ts";
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

interface Settings {
  readonly settings: Pick<ProviderCall, "maxOutputTokens" | "providerOptions" | "reasoning">;
  /** What could not be sent. */
  readonly warnings: readonly ModelWarning[];
}

/** The settings that depend on each other: the options of the provider, its budget for thinking and the limit of the answer. */
function settingsOf(request: ModelRequest, model: AiSdkLanguageModel, ofModel: ProviderOptions | undefined): Settings {
  const { maxOutputTokens, providerOptions, reasoningEffort } = request;
  const { modelId, specificationVersion } = model;
  const options = sentOptions(model.provider, mergedOptions(ofModel, providerOptions) ?? {});
  if (reasoningEffort === undefined) return { settings: limited(request, model, options), warnings: [] };
  if (specificationVersion === "v3") return { settings: limited(request, model, options), warnings: [withoutEffort] };
  if (model.provider === "openrouter") {
    // The package does not read the effort of a call.
    const effort = reasoningEffort === "max" ? "xhigh" : reasoningEffort;
    const openrouter = { reasoning: { effort }, ...options["openrouter"] };
    return { settings: limited(request, model, { ...options, openrouter }), warnings: [] };
  }
  const effort = { reasoning: reasoningEffort };
  const place = thinkingPlace(model, options);
  const isOwn = place === undefined || options[place.name]?.[place.field] !== undefined;
  if (isOwn || reasoningEffort === "none" || maxOutputTokens === undefined || !thinksByBudget(modelId)) {
    return { settings: { ...limited(request, model, options), ...effort }, warnings: [] };
  }
  // The provider's package would derive a budget from the model's limit and add it to the limit of this call.
  const budgetTokens = Math.round(maxOutputTokens * budgetShares[reasoningEffort]);
  if (budgetTokens < SMALLEST_THINKING_BUDGET) {
    return { settings: limited(request, model, options), warnings: [tooFewForThinking(maxOutputTokens)] };
  }
  const thinking = { [place.name]: { ...options[place.name], [place.field]: { type: "enabled", budgetTokens } } };
  return { settings: limited(request, model, { ...options, ...thinking }), warnings: [] };
}

/** The options that are sent: servers of the Responses API must not keep the history themselves, unless the user asks for it. */
function sentOptions(provider: string, given: ProviderOptions): ProviderOptions {
  if (!provider.endsWith(".responses")) return given;
  // The package of xAI includes the encrypted reasoning itself.
  if (provider.startsWith("xai")) return { ...given, xai: { store: false, ...given["xai"] } };
  const key = provider.includes("azure") ? "azure" : "openai";
  return { ...given, [key]: { store: false, include: ["reasoning.encrypted_content"], ...given[key] } };
}

/** The option in which a package keeps a budget for thinking that it adds to the limit of the answer. */
interface ThinkingPlace {
  readonly name: string;
  readonly field: string;
}

/** Packages read the options of the first of their names that is present. `undefined`: no budget is added. */
function thinkingPlace({ provider, modelId }: AiSdkLanguageModel, options: ProviderOptions): ThinkingPlace | undefined {
  if (provider === "amazon-bedrock") {
    const isClaude = modelId.includes("anthropic") || modelId.includes(":application-inference-profile/");
    const name = options["amazonBedrock"] === undefined ? "bedrock" : "amazonBedrock";
    return isClaude ? { name, field: "reasoningConfig" } : undefined;
  }
  // Other names belong to Anthropic's package with the name of a gateway.
  const [first = "anthropic"] = provider.split(".");
  if (!provider.includes("anthropic") && !provider.endsWith(".messages")) return undefined;
  return { name: options[first]?.["thinking"] === undefined ? "anthropic" : first, field: "thinking" };
}

/** The provider accepts no smaller budget, and its package uses this one if none is set. */
const SMALLEST_THINKING_BUDGET = 1_024;

/** The part of `maxOutputTokens` that a model of a thinking budget may think with. */
const budgetShares: Readonly<Record<Exclude<ReasoningEffort, "none">, number>> = {
  minimal: 0.1,
  low: 0.2,
  medium: 0.4,
  high: 0.6,
  xhigh: 0.7,
  max: 0.8,
};

/** Claude 4.5 and older think by a budget, as may models of unknown names; newer ones decide by themselves how much they think. */
const budgetModels = /claude-(?:instant|v?[23](?=$|[-.:])|(?:opus|sonnet|haiku)-4(?!-[6-9]))/;

function thinksByBudget(modelId: string): boolean {
  return !modelId.includes("claude-") || budgetModels.test(modelId);
}

const withoutEffort: ModelWarning = {
  code: "unsupported",
  message:
    "reasoningEffort was not sent: the model's package follows the specification v3, which has no such option; set it in providerOptions",
};

function tooFewForThinking(maxOutputTokens: number): ModelWarning {
  return {
    code: "unsupported",
    message: `reasoningEffort was not sent: this model thinks with at least ${SMALLEST_THINKING_BUDGET} tokens, too many for an answer of at most ${maxOutputTokens}`,
  };
}

/** The limit to send, so that the answer and the provider's budget for thinking together stay within `maxOutputTokens`. */
function limited(
  request: ModelRequest,
  model: AiSdkLanguageModel,
  options: ProviderOptions,
): Pick<ProviderCall, "maxOutputTokens" | "providerOptions"> {
  const { maxOutputTokens } = request;
  const all = model.provider.startsWith("ollama") ? withOllamaOptions(request, options) : options;
  const sent = Object.keys(all).length === 0 ? {} : { providerOptions: all };
  if (maxOutputTokens === undefined) return sent;
  assertLimitHolds(request, model, options);
  const budget = addedBudget(model, options);
  if (maxOutputTokens > budget) return { maxOutputTokens: maxOutputTokens - budget, ...sent };
  throw notSent(
    `at most ${maxOutputTokens} output tokens are left, and the thinking budget alone is ${budget}: raise maxOutputTokens or the budget of the agent, or lower budgetTokens`,
  );
}

function addedBudget(model: AiSdkLanguageModel, options: ProviderOptions): number {
  const place = thinkingPlace(model, options);
  const { type, budgetTokens } = (place && wireObject(options[place.name]?.[place.field])) ?? {};
  if (type !== "enabled") return 0;
  return typeof budgetTokens === "number" ? budgetTokens : SMALLEST_THINKING_BUDGET;
}

const unlimitedEfforts: ReadonlySet<unknown> = new Set(["high", "xhigh", "max"]);

/** Nova 2 on Bedrock takes no limit of output tokens while it thinks with a high effort. */
function assertLimitHolds(
  { reasoningEffort }: ModelRequest,
  { provider, modelId }: AiSdkLanguageModel,
  options: ProviderOptions,
): void {
  if (provider !== "amazon-bedrock" || !modelId.includes("amazon.nova-2-")) return;
  const { type, maxReasoningEffort: own } =
    wireObject((options["amazonBedrock"] ?? options["bedrock"])?.["reasoningConfig"]) ?? {};
  const effort = own ?? reasoningEffort;
  const isThinking = reasoningEffort !== undefined || type === "enabled";
  if (!isThinking || type === "disabled" || !unlimitedEfforts.has(effort)) return;
  throw notSent(
    `${modelId} takes no limit of output tokens with the reasoning effort "${wireText(effort)}": use "medium" or less, or leave out maxOutputTokens and the limits of tokens and cost`,
  );
}

/** A package for Ollama sends these fields beside `options`, where the server ignores them. */
function withOllamaOptions(
  { maxOutputTokens, temperature, stopSequences = [] }: ModelRequest,
  given: ProviderOptions,
): ProviderOptions {
  const { options, ...ollama } = given["ollama"] ?? {};
  const read: JsonObject = {
    ...(maxOutputTokens === undefined ? {} : { num_predict: maxOutputTokens }),
    ...(temperature === undefined ? {} : { temperature }),
    ...(stopSequences.length === 0 ? {} : { stop: [...stopSequences] }),
  };
  if (options === undefined && Object.keys(read).length === 0) return given;
  return { ...given, ollama: { ...ollama, options: { ...(wireObject(options) as JsonObject | undefined), ...read } } };
}

function fieldsOf(
  request: ModelRequest,
  provider: string,
): Omit<ProviderCall, "prompt" | "abortSignal" | keyof Settings["settings"]> {
  const { tools = [], toolChoice, temperature, stopSequences = [], responseFormat } = request;
  const isInOptions = provider.startsWith("ollama");
  return {
    ...(temperature === undefined || isInOptions ? {} : { temperature }),
    ...(stopSequences.length === 0 || isInOptions ? {} : { stopSequences }),
    ...(responseFormat === undefined || responseFormat.type === "text"
      ? {}
      : { responseFormat: formatOf(responseFormat) }),
    ...(tools.length === 0
      ? {}
      : {
          tools: tools.map(({ name, description, parameters }) => ({
            type: "function" as const,
            name,
            description,
            inputSchema: parameters,
          })),
          ...(toolChoice === undefined ? {} : { toolChoice: choiceOf(toolChoice) }),
        }),
  };
}

function choiceOf(choice: ToolChoice): NonNullable<ProviderCall["toolChoice"]> {
  return typeof choice === "string" ? { type: choice } : { type: "tool", toolName: choice.tool };
}

type Format = Exclude<NonNullable<ModelRequest["responseFormat"]>, { type: "text" }>;

function formatOf(format: Format): { readonly type: "json"; readonly schema?: JsonObject; readonly name?: string } {
  return format.type === "json" ? { type: "json" } : { type: "json", schema: format.schema, name: format.name };
}

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

function notSent(reason: string): ModelError {
  return new ModelError(`The model call was not sent: ${reason}.`, {
    retryable: false,
    mayHaveBeenSent: false,
    details: { kind: "configuration" },
  });
}
