import { ModelError } from "../../errors/index.ts";
import type {
  JsonObject,
  ModelRequest,
  ModelWarning,
  ProviderOptions,
  ReasoningEffort,
  ToolChoice,
} from "../../state/index.ts";
import { AdapterModel, type ModelBackend, type PreparedCall } from "../adapter-model.ts";
import type { CallGuard } from "../call-guard.ts";
import type { GenerateOptions, LanguageModel } from "../language-model.ts";
import { formedPrompt } from "../prompt-form.ts";
import { type KnownFormats, knownFormatsOf, type StructuredOutput } from "../structured-output.ts";
import type { WireWriter } from "../wire-calls.ts";
import { wireObject, wireText } from "../wire-values.ts";
import { ProviderAnswer } from "./provider-answer.ts";
import { providerFailure } from "./provider-failure.ts";
import { type AiSdkLanguageModel, type ProviderCall, streamOf } from "./provider-model.ts";
import { providerPrompt } from "./provider-prompt.ts";

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
  /** Further texts by which the provider refuses a prompt that is too long: parts of its messages, or patterns. Default: none. */
  readonly tooLongMessages?: readonly (string | RegExp)[] | undefined;
  /**
   * How an answer that fits a schema (`output`) is asked for: `jsonSchema` by the provider's own mode, `tool` by a final call of a tool
   * whose parameters are the schema, `jsonObject` by its JSON mode with the schema in the instructions, `prompt` by the instructions
   * alone. Default `auto`: the first of these that the provider neither refuses nor ignores. A call in another form that the provider
   * refuses fails with a `ModelError`.
   */
  readonly structuredOutput?: "auto" | StructuredOutput | undefined;
}

/** The model of a provider's package, as `aiSdkModel()` returns it. */
export function providerModel(model: AiSdkLanguageModel, options: AiSdkModelOptions): LanguageModel {
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

  knownFormats(): KnownFormats {
    return knownFormatsOf(this.#model.provider, this.#model.modelId);
  }

  async prepare(request: ModelRequest): Promise<PreparedCall> {
    const prompt = await this.#prompt(request);
    const { settings, warnings } = settingsOf(request, this.#model, this.#options.providerOptions);
    const fields = { ...fieldsOf(request), ...settings };
    const progress = new ProviderAnswer(warnings);
    return {
      adapter: this.#adapter,
      isStreamed: true,
      progress,
      exchange: async (guard, onDelta) => {
        try {
          const call = { prompt, abortSignal: guard.signal, ...fields };
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
    const { specificationVersion: specification, supportedUrls } = this.#model;
    const formed = formedPrompt(request, { reader: this.#adapter, keepsForeignIds: false });
    return providerPrompt(formed, { specification, supportedUrls: await supportedUrls });
  }
}

interface Settings {
  readonly settings: Pick<ProviderCall, "maxOutputTokens" | "providerOptions" | "reasoning">;
  /** What could not be sent. */
  readonly warnings: readonly ModelWarning[];
}

/** The settings that depend on each other: the options of the provider, its budget for thinking and the limit of the answer. */
function settingsOf(
  { maxOutputTokens, providerOptions, reasoningEffort }: ModelRequest,
  { provider, modelId, specificationVersion }: AiSdkLanguageModel,
  ofModel: ProviderOptions | undefined,
): Settings {
  const options = sentOptions(provider, merged(ofModel, providerOptions));
  const effort = reasoningEffort === undefined ? {} : { reasoning: reasoningEffort };
  if (reasoningEffort !== undefined && specificationVersion === "v3") {
    return { settings: limited(maxOutputTokens, options), warnings: [withoutEffort] };
  }
  if (reasoningEffort === undefined || reasoningEffort === "none" || maxOutputTokens === undefined) {
    return { settings: { ...limited(maxOutputTokens, options), ...effort }, warnings: [] };
  }
  const place = thinkingFields.find(([name]) => provider.includes(name));
  const isOwn = place === undefined || options[place[0]]?.[place[1]] !== undefined;
  if (isOwn || !thinksByBudget(modelId)) {
    return { settings: { ...limited(maxOutputTokens, options), ...effort }, warnings: [] };
  }
  // The provider's package would derive a budget from the model's limit and add it to the limit of this call.
  const budgetTokens = Math.round(maxOutputTokens * budgetShares[reasoningEffort]);
  if (budgetTokens < SMALLEST_THINKING_BUDGET) {
    return { settings: limited(maxOutputTokens, options), warnings: [tooFewForThinking(maxOutputTokens)] };
  }
  const [name, field] = place;
  const thinking = { [name]: { ...options[name], [field]: { type: "enabled", budgetTokens } } };
  return { settings: limited(maxOutputTokens, { ...options, ...thinking }), warnings: [] };
}

/** The options of the call over those of the model, field by field. */
function merged(ofModel: ProviderOptions = {}, ofCall: ProviderOptions = {}): ProviderOptions {
  const all: Record<string, JsonObject> = { ...ofModel };
  for (const [name, fields] of Object.entries(ofCall)) all[name] = { ...all[name], ...fields };
  return all;
}

/** The options that are sent: models of OpenAI's Responses API must not keep the history themselves, unless the user asks for it. */
function sentOptions(provider: string, given: ProviderOptions): ProviderOptions {
  if (!provider.endsWith(".responses")) return given;
  const key = provider.includes("azure") ? "azure" : "openai";
  return { ...given, [key]: { store: false, include: ["reasoning.encrypted_content"], ...given[key] } };
}

/** Where providers keep a budget for thinking that they add to the limit of the answer. */
const thinkingFields = [
  ["anthropic", "thinking"],
  ["bedrock", "reasoningConfig"],
] as const;

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
  maxOutputTokens: number | undefined,
  options: ProviderOptions,
): Pick<ProviderCall, "maxOutputTokens" | "providerOptions"> {
  const sent = Object.keys(options).length === 0 ? {} : { providerOptions: options };
  if (maxOutputTokens === undefined) return sent;
  let budget = 0;
  for (const [provider, field] of thinkingFields) {
    const { type, budgetTokens } = wireObject(options[provider]?.[field]) ?? {};
    if (wireText(type) !== "enabled") continue;
    budget += typeof budgetTokens === "number" ? budgetTokens : SMALLEST_THINKING_BUDGET;
  }
  if (maxOutputTokens > budget) return { maxOutputTokens: maxOutputTokens - budget, ...sent };
  throw notSent(
    `at most ${maxOutputTokens} output tokens are left, and the thinking budget alone is ${budget}: raise maxOutputTokens or the budget of the agent, or lower budgetTokens`,
  );
}

function fieldsOf(request: ModelRequest): Omit<ProviderCall, "prompt" | "abortSignal" | keyof Settings["settings"]> {
  const { tools = [], toolChoice, temperature, stopSequences = [], responseFormat } = request;
  return {
    ...(temperature === undefined ? {} : { temperature }),
    ...(stopSequences.length === 0 ? {} : { stopSequences }),
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
