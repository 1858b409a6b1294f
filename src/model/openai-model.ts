import type { OpenAI } from "openai";
import { InvalidInputError, ModelError } from "../errors/index.ts";
import {
  type OptionsSchema,
  functionRule,
  nameRule,
  oneOfRule,
  optionsOf,
  recordRule,
  ruleOf,
  textRule,
  wholeNumberRule,
} from "../base/index.ts";
import { type JsonObject, type ModelRequest, type ModelResponse, takeObject } from "../state/index.ts";
import { AnswerAccumulator } from "./accumulator.ts";
import { CallGuard } from "./call-guard.ts";
import { type GenerateOptions, type LanguageModel } from "./language-model.ts";
import { addressOf, givenClient, type OpenaiClient, ownClient } from "./openai-client.ts";
import { fieldsOfProvider, type WireBody, type WireOptions, wireBody } from "./openai-wire.ts";
import { FormFallback } from "./form-fallback.ts";
import { guardedCall } from "./guarded-call.ts";
import type { WireWriter } from "./wire-calls.ts";
import { delayRule, tooLongMessagesRule } from "./model-option-rules.ts";
import { readAnswer } from "./read-answer.ts";
import { knownFormatsOf, type StructuredOutput, structuredOutputs } from "./structured-output.ts";
import { imageTokenBound, countPromptTokens, promptByteBound } from "./token-count.ts";

/** Options of `openaiModel()`. */
export interface OpenaiModelOptions {
  /** The provider, if it is not OpenAI: used in traces and to look up the price (`azure`, `groq`, `openrouter`, …). Default `openai`. */
  readonly provider?: string | undefined;
  /**
   * Sends the requests: an `OpenAI` or `AzureOpenAI` of the `openai` package. Its base URL, keys, headers, `fetch`, logger and timeout
   * apply, so `apiKey`, `baseURL`, `organization`, `headers` and `fetch` are refused beside it. Its retries are off for the calls of this
   * model, because the runtime repeats calls. Default: a client that is created on first use.
   */
  readonly client?: OpenAI | undefined;
  /** Default: `OPENAI_API_KEY`, read on first use. */
  readonly apiKey?: string | undefined;
  /** Default: `OPENAI_BASE_URL`, read on first use, else OpenAI's URL. */
  readonly baseURL?: string | undefined;
  /** OpenAI's id of the organization that pays. Default: `OPENAI_ORG_ID`, else none. */
  readonly organization?: string | undefined;
  /** Headers of every request. Default: none. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Tokens that prompt and answer may have together. Default: unknown. */
  readonly contextWindow?: number | undefined;
  /** Longest time without data after the first piece of an answer, in milliseconds. Default 60,000. */
  readonly stallTimeoutMs?: number | undefined;
  /**
   * Longest wait for the first piece of a streamed answer, in milliseconds. Default: `requestTimeoutMs`, as for an unstreamed answer,
   * since a local model may read a long prompt for minutes.
   */
  readonly headersTimeoutMs?: number | undefined;
  /** Longest time for the complete call, in milliseconds. Default 600,000. */
  readonly requestTimeoutMs?: number | undefined;
  /** Sends the requests. Default: a `fetch` over kept-alive connections of `undici`. */
  readonly fetch?: typeof globalThis.fetch | undefined;
  /** Fields for the request's body, set last. Default: none. */
  readonly extraBody?: JsonObject | undefined;
  /** The field that carries `maxOutputTokens`. Default `max_completion_tokens`; some servers only accept `max_tokens`. */
  readonly outputLimitField?: "max_completion_tokens" | "max_tokens" | undefined;
  /** Tokens to reserve for an image. Default 2,500. */
  readonly imageTokens?: number | undefined;
  /**
   * How to send ids of calls that another model or server wrote. `portable`: as 9 letters and digits, which every server accepts;
   * `verbatim`: unchanged. The model's own ids are always sent unchanged. Default `portable`.
   */
  readonly foreignCallIds?: "portable" | "verbatim" | undefined;
  /**
   * Additional texts or patterns in messages with which the server refuses a prompt that is too long. The texts of many servers are built
   * in. `autoCompact` depends on them. Default: none.
   */
  readonly tooLongMessages?: readonly (string | RegExp)[] | undefined;
  /**
   * How to request an answer that fits a schema (`output`): by `json_schema`, by `json_object` with the schema in the instructions, or by
   * the instructions alone (`prompt`). Default `auto`: `json_schema`, until the server refuses it; the format that it accepts is then
   * remembered in the process for this server and model, separately for requests with tools.
   */
  readonly structuredOutput?: "auto" | StructuredOutput | undefined;
}

/**
 * A model behind a Chat Completions server: OpenAI, Azure, or any compatible one. The `openai` package is loaded at the first call.
 * Throws `InvalidInputError` at once for invalid options, and for options that contradict a given `client`. A call with a missing or
 * unusable key, or with an unusable URL, fails with a `ModelError` of kind `configuration`: it is not sent, not repeated and not billed.
 */
export function openaiModel(name: string, given?: OpenaiModelOptions): LanguageModel {
  if (typeof name !== "string" || name.trim() === "") {
    throw new InvalidInputError('openaiModel() needs a model name as its first argument, for instance "gpt-5-mini".');
  }
  const options = optionsOf<OpenaiModelOptions>(given, "openaiModel()", modelOptionsSchema);
  const contradicting = clientOptions.filter((option) => options[option] !== undefined);
  if (options.client !== undefined && contradicting.length > 0) {
    const names = contradicting.join(", ");
    throw new InvalidInputError(
      `openaiModel() was given both client and ${names}: set ${names} on the client, or leave client out.`,
    );
  }
  return new OpenaiModel(name, options);
}

/** Options that a given client already has. */
const clientOptions = ["apiKey", "baseURL", "organization", "headers", "fetch"] as const;

const clientRule = ruleOf(
  "a client of the openai package: new OpenAI(...) or new AzureOpenAI(...)",
  (value) => typeof value === "object" && value !== null && "post" in value && "baseURL" in value,
);

const modelOptionsSchema: OptionsSchema<OpenaiModelOptions> = {
  rules: {
    client: clientRule,
    provider: nameRule,
    // A key must not appear in messages, even an invalid one.
    apiKey: secretRule,
    baseURL: textRule,
    organization: textRule,
    headers: recordRule("an object of header values by header name", secretRule),
    contextWindow: wholeNumberRule(1),
    stallTimeoutMs: delayRule,
    headersTimeoutMs: delayRule,
    requestTimeoutMs: delayRule,
    fetch: functionRule,
    extraBody: (value, where) => takeObject(value, where),
    outputLimitField: oneOfRule("max_completion_tokens", "max_tokens"),
    imageTokens: wholeNumberRule(1),
    foreignCallIds: oneOfRule("portable", "verbatim"),
    tooLongMessages: tooLongMessagesRule,
    structuredOutput: oneOfRule("auto", ...structuredOutputs),
  },
  instead: {
    key: "apiKey",
    token: "apiKey",
    baseUrl: "baseURL",
    url: "baseURL",
    timeout: "requestTimeoutMs",
    timeoutMs: "requestTimeoutMs",
    maxTokens: "maxOutputTokens of defineAgent()",
    temperature: "temperature of defineAgent()",
  },
};

function secretRule(value: unknown, where: string): string {
  if (typeof value === "string") return value;
  throw new InvalidInputError(`${where} is of type ${value === null ? "null" : typeof value}; expected a text`);
}

class OpenaiModel implements LanguageModel {
  readonly name: string;
  readonly provider: string;
  readonly contextWindow: number | undefined;
  readonly server: string | undefined;
  readonly #options: OpenaiModelOptions;
  readonly #stallTimeoutMs: number;
  readonly #headersTimeoutMs: number | undefined;
  readonly #requestTimeoutMs: number;
  readonly #imageTokens: number;
  #connection: Promise<Connection> | undefined;
  readonly #forms = new FormFallback();

  constructor(name: string, options: OpenaiModelOptions) {
    this.name = name;
    this.provider = options.provider ?? "openai";
    this.contextWindow = options.contextWindow;
    const baseURL = options.client?.baseURL ?? options.baseURL;
    this.server = baseURL !== undefined && URL.canParse(baseURL) ? addressOf(baseURL) : undefined;
    this.#options = options;
    this.#stallTimeoutMs = options.stallTimeoutMs ?? 60_000;
    this.#headersTimeoutMs = options.headersTimeoutMs;
    this.#requestTimeoutMs = options.requestTimeoutMs ?? 600_000;
    this.#imageTokens = options.imageTokens ?? imageTokenBound;
  }

  countPromptTokens(request: ModelRequest): number | Promise<number> {
    return countPromptTokens(request, this.#imageTokens);
  }

  boundPromptTokens(request: ModelRequest): number {
    return promptByteBound(request, this.#imageTokens);
  }

  async generate(request: ModelRequest, options: GenerateOptions): Promise<ModelResponse> {
    const { structuredOutput = "auto", extraBody = {} } = this.#options;
    // `extraBody` and `providerOptions` override the field.
    const own = fieldsOfProvider(request, this);
    const fixed = "response_format" in extraBody || "response_format" in own ? "prompt" : structuredOutput;
    const known = async () => knownFormatsOf((await this.#connected()).client.address, this.name);
    return await this.#forms.call(request, fixed === "auto" ? known : fixed, (asked) => this.#send(asked, options));
  }

  async #send(request: ModelRequest, options: GenerateOptions): Promise<ModelResponse> {
    const { signal } = options;
    const { client, whole, stream, adapter } = await this.#connected();
    if (signal.aborted) throw notSent(signal);
    const progress = new AnswerAccumulator();
    const body = wireBody(request, options.onDelta === undefined ? whole : stream);
    const isStreamed = body["stream"] === true;
    const guard = new CallGuard(signal, {
      requestTimeoutMs: this.#requestTimeoutMs,
      headersTimeoutMs: isStreamed ? this.#headersTimeoutMs : undefined,
      stallTimeoutMs: this.#stallTimeoutMs,
    });
    const call: Call = { progress, guard, options, isStreamed, isCountable: false };
    const answer = await guardedCall({
      model: this.name,
      request,
      signal,
      guard,
      progress,
      exchange: () => this.#exchange(client, body, call),
      countPrompt: (counted) => this.countPromptTokens(counted),
      isCountable: () => call.isCountable,
      secrets: () => client.secrets(),
      tooLongMessages: this.#options.tooLongMessages,
    });
    return { ...answer, adapter };
  }

  #connected(): Promise<Connection> {
    this.#connection ??= this.#connect().catch((error: unknown) => {
      // The environment variables may be set before the next call.
      this.#connection = undefined;
      throw error;
    });
    return this.#connection;
  }

  async #connect(): Promise<Connection> {
    const { client: given, apiKey, baseURL, organization, headers, fetch, foreignCallIds } = this.#options;
    const { extraBody = {}, outputLimitField = "max_completion_tokens" } = this.#options;
    const own = { apiKey, baseURL, organization, headers, fetch, timeoutMs: this.#requestTimeoutMs };
    const client = given === undefined ? await ownClient(own) : givenClient(given);
    const adapter = Object.freeze({ provider: this.provider, model: this.name, server: client.address });
    const keepsForeignIds = foreignCallIds === "verbatim";
    const whole = { stream: false, extraBody, outputLimitField, reader: adapter, keepsForeignIds };
    return { client, adapter, whole, stream: { ...whole, stream: true } };
  }

  async #exchange(client: OpenaiClient, body: WireBody, call: Call): Promise<void> {
    const { progress, guard, options, isStreamed } = call;
    const received = await client.send(body, guard);
    await readAnswer(received, progress, {
      signal: guard.signal,
      asksForStream: isStreamed,
      onDelta: options.onDelta,
      onForm: (isStream) => (call.isCountable = isStream),
      onProgress: () => guard.heard(),
      onLastEvent: () => guard.expectEnd(),
    });
    call.isCountable = true;
    if (progress.fault !== undefined) throw progress.fault;
  }
}

/** Known once the model is used for the first time. */
interface Connection {
  readonly client: OpenaiClient;
  /** The model and its server, as stored in messages. */
  readonly adapter: WireWriter;
  readonly whole: WireOptions;
  readonly stream: WireOptions;
}

interface Call {
  readonly progress: AnswerAccumulator;
  readonly guard: CallGuard;
  readonly options: GenerateOptions;
  /** Whether the answer is requested as a stream. */
  readonly isStreamed: boolean;
  /** Whether the cost can be counted from the received text: the answer is a stream, or it has arrived completely. */
  isCountable: boolean;
}

function notSent(signal: AbortSignal): ModelError {
  return new ModelError("The model call was aborted before it was sent.", {
    retryable: false,
    mayHaveBeenSent: false,
    cause: signal.reason,
    details: { kind: "aborted" },
  });
}
