import { InvalidInputError, ModelError } from "../errors/index.ts";
import {
  type Door,
  functionRule,
  type LightSignal,
  listRule,
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
import { callFailure } from "./call-failure.ts";
import { CallGuard } from "./call-guard.ts";
import { completeUsage, outputTokensOf } from "./usage.ts";
import { type GenerateOptions, type LanguageModel, lightSignalOf } from "./language-model.ts";
import { createOpenaiClient, type OpenaiClient } from "./openai-client.ts";
import { SentPrompts, type WireBody, type WireOptions, wireBody } from "./openai-wire.ts";
import { refusesImages, withoutToolImages } from "./images-refused.ts";
import type { WireWriter } from "./wire-calls.ts";
import { readAnswer } from "./read-answer.ts";
import {
  askedFor,
  knownFormatsOf,
  refusesFormat,
  type StructuredOutput,
  structuredOutputs,
} from "./structured-output.ts";
import { imageTokenBound, countPromptTokens, promptByteBound } from "./token-count.ts";

/** What `openaiModel()` takes beside the name of the model. */
export interface OpenaiModelOptions {
  /**
   * The provider, if it is not OpenAI: it names the model in traces, and the price is looked up under it (`azure`,
   * `groq`, `openrouter`, …). Default `openai`.
   */
  readonly provider?: string | undefined;
  /** Default: `OPENAI_API_KEY`, read on first use. */
  readonly apiKey?: string | undefined;
  /** Default: `OPENAI_BASE_URL`, read on first use, else OpenAI's own. */
  readonly baseURL?: string | undefined;
  /** OpenAI's id of the organization that is billed. Default: `OPENAI_ORG_ID`, else none. */
  readonly organization?: string | undefined;
  /** Sent with every request. Default: none. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Tokens that prompt and answer may have together. Default: not known. */
  readonly contextWindow?: number | undefined;
  /** Longest silence inside an answer, from its first piece on, in milliseconds. Default 60,000. */
  readonly stallTimeoutMs?: number | undefined;
  /**
   * Longest wait for the first piece of a streamed answer, in milliseconds. Default: `requestTimeoutMs`, as for a whole answer, since a
   * local model may read a long prompt for minutes.
   */
  readonly headersTimeoutMs?: number | undefined;
  /** Longest time for the whole call, in milliseconds. Default 600,000. */
  readonly requestTimeoutMs?: number | undefined;
  /**
   * Sends the requests, through the `openai` client, in place of the own connections. Calls then cost several times the
   * processor time. Default: the own connections.
   */
  readonly fetch?: typeof globalThis.fetch | undefined;
  /** Fields for the request's body, set last. Default: none. */
  readonly extraBody?: JsonObject | undefined;
  /** The field that carries `maxOutputTokens`. Default `max_completion_tokens`; some servers only know `max_tokens`. */
  readonly outputLimitField?: "max_completion_tokens" | "max_tokens" | undefined;
  /** Tokens to reserve for an image. Default 2,500. */
  readonly imageTokens?: number | undefined;
  /**
   * The ids of calls that another model or server wrote. `portable`: they are sent as 9 letters and digits, which every server takes;
   * `verbatim`: as they came. The model's own always go back as they came. Default `portable`.
   */
  readonly foreignCallIds?: "portable" | "verbatim" | undefined;
  /**
   * Further texts by which the server refuses a prompt that is too long: parts of its messages, or patterns. The texts of many servers
   * are known. `autoCompact` depends on it. Default: none.
   */
  readonly tooLongMessages?: readonly (string | RegExp)[] | undefined;
  /**
   * How an answer that fits a schema (`output`) is asked for: by `json_schema`, by `json_object` with the schema in the instructions,
   * or by the instructions alone (`prompt`). Default `auto`: `json_schema`, until the server refuses it; what it takes then is
   * remembered in the process for this server and model, apart for requests with tools.
   */
  readonly structuredOutput?: "auto" | StructuredOutput | undefined;
}

/** Longest delay of a timer. */
const longestDelayMs = 2_147_483_647;

/**
 * A model behind a Chat Completions server: OpenAI, or any compatible one. The `openai` package is loaded when it is needed.
 * Throws `InvalidInputError` for bad options at once. A call without a key, or with a key or an address that cannot be used, fails with a
 * `ModelError` of kind `configuration`: it is not sent, not repeated and not billed.
 */
export function openaiModel(name: string, given?: OpenaiModelOptions): LanguageModel {
  if (typeof name !== "string" || name.trim() === "") {
    throw new InvalidInputError('openaiModel takes a model\'s name as its first argument, for instance "gpt-5-mini".');
  }
  return new OpenaiModel(name, optionsOf<OpenaiModelOptions>(given, "openaiModel()", modelDoor));
}

const delayRule = wholeNumberRule(1, longestDelayMs);

const messageRule = ruleOf(
  "a text, or a pattern",
  (value) => (typeof value === "string" && value !== "") || value instanceof RegExp,
);

const modelDoor: Door<OpenaiModelOptions> = {
  rules: {
    provider: nameRule,
    // A key must not be shown, even an invalid one.
    apiKey: secretRule,
    baseURL: textRule,
    organization: textRule,
    headers: recordRule("an object of texts by the names of headers", secretRule),
    contextWindow: wholeNumberRule(1),
    stallTimeoutMs: delayRule,
    headersTimeoutMs: delayRule,
    requestTimeoutMs: delayRule,
    fetch: functionRule,
    extraBody: (value, where) => takeObject(value, where),
    outputLimitField: oneOfRule("max_completion_tokens", "max_tokens"),
    imageTokens: wholeNumberRule(1),
    foreignCallIds: oneOfRule("portable", "verbatim"),
    tooLongMessages: listRule("a list of texts and patterns", messageRule),
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
  throw new InvalidInputError(`${where} is of type ${value === null ? "null" : typeof value}; it takes a text`);
}

class OpenaiModel implements LanguageModel {
  readonly name: string;
  readonly provider: string;
  readonly contextWindow: number | undefined;
  readonly #options: OpenaiModelOptions;
  readonly #stallTimeoutMs: number;
  readonly #headersTimeoutMs: number | undefined;
  readonly #requestTimeoutMs: number;
  readonly #imageTokens: number;
  #connection: Connection | undefined;
  /** Whether the server takes images, as far as is known. */
  #takesImages = true;

  constructor(name: string, options: OpenaiModelOptions) {
    this.name = name;
    this.provider = options.provider ?? "openai";
    this.contextWindow = options.contextWindow;
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

  /** A call that is refused for the format of its answer is asked another way; the refusal has cost nothing. */
  async generate(request: ModelRequest, options: GenerateOptions): Promise<ModelResponse> {
    if (request.responseFormat?.type !== "json_schema") return await this.#attempt(request, options);
    const { structuredOutput = "auto", baseURL, extraBody = {} } = this.#options;
    // The user's own field is set last.
    const fixed = "response_format" in extraBody ? "prompt" : structuredOutput;
    if (fixed !== "auto") return await this.#attempt(askedFor(request, fixed), options);
    const formats = knownFormatsOf(baseURL ?? process.env["OPENAI_BASE_URL"] ?? "", this.name);
    for (;;) {
      const format = formats.formatFor(request);
      try {
        return await this.#attempt(askedFor(request, format), options);
      } catch (error) {
        if (format === "prompt" || !(error instanceof ModelError) || !refusesFormat(error)) throw error;
        formats.refused(request, format);
      }
    }
  }

  /** A call that is refused for its images is sent again without those of tools; the refusal has cost nothing. */
  async #attempt(request: ModelRequest, options: GenerateOptions): Promise<ModelResponse> {
    const asked = this.#takesImages ? request : withoutToolImages(request);
    try {
      return await this.#send(asked, options);
    } catch (error) {
      const rest = withoutToolImages(asked);
      if (rest === asked || !(error instanceof ModelError) || !refusesImages(error)) throw error;
      const answer = await this.#send(rest, options);
      this.#takesImages = false;
      return answer;
    }
  }

  async #send(request: ModelRequest, options: GenerateOptions): Promise<ModelResponse> {
    const signal = lightSignalOf(options);
    const { client, whole, stream, adapter } = this.#connection ?? (await this.#connect());
    if (signal.aborted) throw notSent(signal);
    const accumulator = new AnswerAccumulator();
    const body = wireBody(request, options.onDelta === undefined ? whole : stream);
    const guard = new CallGuard(signal, {
      requestTimeoutMs: this.#requestTimeoutMs,
      headersTimeoutMs: body.isStreamed ? this.#headersTimeoutMs : undefined,
      stallTimeoutMs: this.#stallTimeoutMs,
    });
    const call: Call = { accumulator, guard, options, isCountable: false };
    try {
      await guard.race(this.#exchange(client, body, call));
    } catch (error) {
      // After the finish reason, a broken end only loses the usage; another call would cost more.
      const isTransport = guard.cut !== undefined || !(error instanceof ModelError);
      const isUsable = isTransport && accumulator.isFinished && accumulator.fault === undefined && !signal.aborted;
      if (!isUsable) throw await this.#failure(guard.cut ?? error, client.secrets, request, call);
    } finally {
      guard.end();
    }
    const answer = accumulator.answer(this.name);
    const { usage: reported } = answer;
    const generated = accumulator.generatedText();
    const countInput = (): number | Promise<number> => this.countPromptTokens(request);
    return { ...answer, usage: await completeUsage({ reported, generated, countInput }), adapter };
  }

  async #connect(): Promise<Connection> {
    const { apiKey, baseURL, organization, headers, fetch, foreignCallIds } = this.#options;
    const { extraBody = {}, outputLimitField = "max_completion_tokens" } = this.#options;
    const timeoutMs = this.#requestTimeoutMs;
    const client = await createOpenaiClient({ apiKey, baseURL, organization, headers, fetch, timeoutMs });
    const adapter = Object.freeze({ provider: this.provider, model: this.name, server: client.address });
    const prompts = new SentPrompts(adapter, { keepsForeignIds: foreignCallIds === "verbatim" });
    const whole = { model: this.name, stream: false, extraBody, outputLimitField, prompts };
    this.#connection = { client, adapter, whole, stream: { ...whole, stream: true } };
    return this.#connection;
  }

  async #exchange(client: OpenaiClient, body: WireBody, call: Call): Promise<void> {
    const { accumulator, guard, options } = call;
    const received = await client.send(body.text, guard);
    await readAnswer(received, accumulator, {
      asksForStream: body.isStreamed,
      onDelta: options.onDelta,
      onForm: (isStream) => (call.isCountable = isStream),
      onProgress: () => guard.heard(),
      onLastEvent: () => guard.expectEnd(),
    });
    call.isCountable = true;
    if (accumulator.fault !== undefined) throw accumulator.fault;
  }

  async #failure(error: unknown, secrets: readonly string[], request: ModelRequest, call: Call): Promise<ModelError> {
    const { accumulator, isCountable } = call;
    const reported = accumulator.usage;
    const generated = accumulator.generatedText();
    const { tooLongMessages = [] } = this.#options;
    const context = { secrets, tooLongMessages, now: Date.now() };
    // A server that refuses a call in its answer bills nothing but what it has sent, and the cost of a whole answer that was cut
    // cannot be known.
    const isServers = error instanceof ModelError && error.status !== undefined;
    const isKnown = isServers ? generated !== "" : isCountable;
    if (!isKnown && reported === undefined) return callFailure(error, { ...context, partial: undefined });
    const { tokens } = await outputTokensOf(reported?.outputTokens, generated);
    const inputTokens = reported?.inputTokens ?? (await this.countPromptTokens(request));
    return callFailure(error, { ...context, partial: { inputTokens, outputTokens: tokens } });
  }
}

/** What is known once the model is used for the first time. */
interface Connection {
  readonly client: OpenaiClient;
  /** The model at its server, as messages name it. */
  readonly adapter: WireWriter;
  readonly whole: WireOptions;
  readonly stream: WireOptions;
}

interface Call {
  readonly accumulator: AnswerAccumulator;
  readonly guard: CallGuard;
  readonly options: GenerateOptions;
  /** What the answer has cost can be counted by what has come of it: it is a stream, or all of it has come. */
  isCountable: boolean;
}

function notSent(signal: LightSignal): ModelError {
  return new ModelError("The model call was aborted before it was sent.", {
    retryable: false,
    mayHaveBeenSent: false,
    cause: signal.reason,
    details: { kind: "aborted" },
  });
}
