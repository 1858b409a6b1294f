import { ModelError } from "../../errors/index.ts";
import type { JsonObject, ModelRequest } from "../../state/index.ts";
import { AdapterModel, type ModelBackend, type PreparedCall } from "../adapter-model.ts";
import type { CallGuard } from "../call-guard.ts";
import type { GenerateOptions, LanguageModel } from "../language-model.ts";
import { formedPrompt } from "../prompt-form.ts";
import { type KnownFormats, knownFormatsOf, type StructuredOutput } from "../structured-output.ts";
import type { WireWriter } from "../wire-calls.ts";
import { wireObject, wireText } from "../wire-values.ts";
import { ProviderAnswer } from "./provider-answer.ts";
import { providerFailure } from "./provider-failure.ts";
import { type AiSdkLanguageModel, type ProviderCall, type ProviderOptions, streamOf } from "./provider-model.ts";
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
   * How an answer that fits a schema (`output`) is asked for: `jsonSchema` by the provider's own mode, `jsonObject` by its JSON mode with
   * the schema in the instructions, `prompt` by the instructions alone. Default `auto`: `jsonSchema`, until the provider refuses or
   * ignores it.
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
  readonly #providerOptions: ProviderOptions;
  readonly #adapter: WireWriter;

  constructor(model: AiSdkLanguageModel, { name, provider, options }: ProviderIdentity) {
    this.#model = model;
    this.#providerOptions = sentOptions(model.provider, options.providerOptions ?? {});
    this.#adapter = Object.freeze({ provider, model: name, server: model.provider });
  }

  knownFormats(): KnownFormats {
    return knownFormatsOf(this.#model.provider, this.#model.modelId);
  }

  async prepare(request: ModelRequest): Promise<PreparedCall> {
    const prompt = await this.#prompt(request);
    const limit = answerLimit(request.maxOutputTokens, this.#providerOptions);
    const fields = fieldsOf(request, limit, this.#providerOptions);
    const progress = new ProviderAnswer();
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

/** The limit to send, so that the answer and the provider's budget for thinking together stay within `maxOutputTokens`. */
function answerLimit(maxOutputTokens: number | undefined, options: ProviderOptions): number | undefined {
  if (maxOutputTokens === undefined) return undefined;
  let budget = 0;
  for (const [provider, field] of thinkingFields) {
    const { type, budgetTokens } = wireObject(options[provider]?.[field]) ?? {};
    if (wireText(type) === "enabled" && typeof budgetTokens === "number") budget += budgetTokens;
  }
  if (maxOutputTokens > budget) return maxOutputTokens - budget;
  throw notSent(
    `at most ${maxOutputTokens} output tokens are left, and the thinking budget alone is ${budget}: raise maxOutputTokens or the budget of the agent, or lower budgetTokens`,
  );
}

function fieldsOf(
  request: ModelRequest,
  limit: number | undefined,
  providerOptions: ProviderOptions,
): Omit<ProviderCall, "prompt" | "abortSignal"> {
  const { tools = [], toolChoice, temperature, responseFormat } = request;
  return {
    ...(limit === undefined ? {} : { maxOutputTokens: limit }),
    ...(temperature === undefined ? {} : { temperature }),
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
          ...(toolChoice === undefined ? {} : { toolChoice: { type: toolChoice } }),
        }),
    ...(Object.keys(providerOptions).length === 0 ? {} : { providerOptions }),
  };
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
