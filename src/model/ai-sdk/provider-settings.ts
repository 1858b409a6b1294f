import { ModelError } from "../../errors/index.ts";
import {
  type JsonObject,
  mergedOptions,
  type ModelRequest,
  type ModelWarning,
  type ProviderOptions,
  type ReasoningEffort,
  type ToolChoice,
} from "../../state/index.ts";
import { wireObject, wireText } from "../wire-values.ts";
import type { AiSdkLanguageModel, ProviderCall } from "./provider-model.ts";

export interface Settings {
  readonly settings: Pick<ProviderCall, "maxOutputTokens" | "providerOptions" | "reasoning">;
  /** What could not be sent. */
  readonly warnings: readonly ModelWarning[];
}

/** The settings that depend on each other: the options of the provider, its budget for thinking and the limit of the answer. */
export function settingsOf(
  request: ModelRequest,
  model: AiSdkLanguageModel,
  ofModel: ProviderOptions | undefined,
): Settings {
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
  const option = thinkingOption(model, options);
  const isOwn = option === undefined || options[option.name]?.[option.field] !== undefined;
  if (isOwn || reasoningEffort === "none" || maxOutputTokens === undefined || !thinksByBudget(modelId)) {
    return { settings: { ...limited(request, model, options), ...effort }, warnings: [] };
  }
  // The provider's package would derive a budget from the model's limit and add it to the limit of this call.
  const budgetTokens = Math.round(maxOutputTokens * budgetShares[reasoningEffort]);
  if (budgetTokens < SMALLEST_THINKING_BUDGET) {
    return { settings: limited(request, model, options), warnings: [tooFewForThinking(maxOutputTokens)] };
  }
  const thinking = { [option.name]: { ...options[option.name], [option.field]: { type: "enabled", budgetTokens } } };
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
interface ThinkingOption {
  readonly name: string;
  readonly field: string;
}

/** Packages read the options of the first of their names that is present. `undefined`: no budget is added. */
function thinkingOption(
  { provider, modelId }: AiSdkLanguageModel,
  options: ProviderOptions,
): ThinkingOption | undefined {
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
  const option = thinkingOption(model, options);
  const { type, budgetTokens } = (option && wireObject(options[option.name]?.[option.field])) ?? {};
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

/** The fields of a call that do not depend on each other. */
export function fieldsOf(
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

function notSent(reason: string): ModelError {
  return new ModelError(`The model call was not sent: ${reason}.`, {
    retryable: false,
    mayHaveBeenSent: false,
    details: { kind: "configuration" },
  });
}
