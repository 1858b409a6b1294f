import type { OpenAI } from "openai";
import { InvalidInputError, ModelError } from "../errors/index.ts";
import {
  type OptionsSchema,
  functionRule,
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
import { type GenerateOptions, type LanguageModel } from "./language-model.ts";
import { givenClient, type OpenaiClient, ownClient } from "./openai-client.ts";
import { type WireBody, type WireOptions, wireBody } from "./openai-wire.ts";
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
  /**
   * Sends the requests: an `OpenAI` or `AzureOpenAI` of the `openai` package. Its base URL, keys, headers, `fetch`, logger and timeout
   * count, so `apiKey`, `baseURL`, `organization`, `headers` and `fetch` are refused beside it. Its retries are off for the calls of this
   * model, because the runtime repeats calls. Default: a client that is made on first use.
   */
  readonly client?: OpenAI | undefined;
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
  /** Sends the requests. Default: one over kept-alive connections of `undici`. */
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
 * A model behind a Chat Completions server: OpenAI, Azure, or any compatible one. The `openai` package is loaded at the first call.
 * Throws `InvalidInputError` for bad options, and for such as contradict a given `client`, at once. A call without a key, or with a key or an address that cannot be used, fails with a
 * `ModelError` of kind `configuration`: it is not sent, not repeated and not billed.
 */
export function openaiModel(name: string, given?: OpenaiModelOptions): LanguageModel {
  if (typeof name !== "string" || name.trim() === "") {
    throw new InvalidInputError('openaiModel takes a model\'s name as its first argument, for instance "gpt-5-mini".');
  }
  const options = optionsOf<OpenaiModelOptions>(given, "openaiModel()", modelOptionsSchema);
  const contradicting = clientOptions.filter((option) => options[option] !== undefined);
  if (options.client !== undefined && contradicting.length > 0) {
    const names = contradicting.join(", ");
    throw new InvalidInputError(
      `openaiModel() has client and ${names}: set ${names} on the client, or leave client out.`,
    );
  }
  return new OpenaiModel(name, options);
}

/** What a given client has of its own. */
const clientOptions = ["apiKey", "baseURL", "organization", "headers", "fetch"] as const;

const clientRule = ruleOf(
  "a client of the openai package: new OpenAI(...) or new AzureOpenAI(...)",
  (value) => typeof value === "object" && value !== null && "post" in value && "baseURL" in value,
);

const delayRule = wholeNumberRule(1, longestDelayMs);

const messageRule = ruleOf(
  "a text, or a pattern",
  (value) => (typeof value === "string" && value !== "") || value instanceof RegExp,
);

const modelOptionsSchema: OptionsSchema<OpenaiModelOptions> = {
  rules: {
    client: clientRule,
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
  throw new InvalidInputError(`${where} is of type ${value === null ? "null" : typeof value}; expected a text`);
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
  #connection: Promise<Connection> | undefined;
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
    const { structuredOutput = "auto", extraBody = {} } = this.#options;
    // The user's own field is set last.
    const fixed = "response_format" in extraBody ? "prompt" : structuredOutput;
    if (fixed !== "auto") return await this.#attempt(askedFor(request, fixed), options);
    const formats = knownFormatsOf((await this.#connected()).client.address, this.name);
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
    const { signal } = options;
    const { client, whole, stream, adapter } = await this.#connected();
    if (signal.aborted) throw notSent(signal);
    const accumulator = new AnswerAccumulator();
    const body = wireBody(request, options.onDelta === undefined ? whole : stream);
    const isStreamed = body["stream"] === true;
    const guard = new CallGuard(signal, {
      requestTimeoutMs: this.#requestTimeoutMs,
      headersTimeoutMs: isStreamed ? this.#headersTimeoutMs : undefined,
      stallTimeoutMs: this.#stallTimeoutMs,
    });
    const call: Call = { accumulator, guard, options, isStreamed, isCountable: false };
    try {
      await guard.race(this.#exchange(client, body, call));
    } catch (error) {
      // After the finish reason, a broken end only loses the usage; another call would cost more.
      const isTransport = guard.cut !== undefined || !(error instanceof ModelError);
      const isUsable = isTransport && accumulator.isFinished && accumulator.fault === undefined && !signal.aborted;
      if (!isUsable) throw await this.#failure(guard.cut ?? error, client.secrets(), request, call);
    } finally {
      guard.end();
    }
    const answer = accumulator.answer(this.name);
    const { usage: reported } = answer;
    const generated = accumulator.generatedText();
    const countInput = (): number | Promise<number> => this.countPromptTokens(request);
    return { ...answer, usage: await completeUsage({ reported, generated, countInput }), adapter };
  }

  #connected(): Promise<Connection> {
    this.#connection ??= this.#connect().catch((error: unknown) => {
      // The environment may be mended meanwhile.
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
    const { accumulator, guard, options, isStreamed } = call;
    const received = await client.send(body, guard);
    await readAnswer(received, accumulator, {
      signal: guard.signal,
      asksForStream: isStreamed,
      onDelta: options.onDelta,
      onForm: (isStream) => (call.isCountable = isStream),
      onProgress: () => guard.heard(),
      onLastEvent: () => guard.expectEnd(),
    });
    call.isCountable = true;
    if (accumulator.fault !== undefined) throw accumulator.fault;
  }

  async #failure(error: unknown, secrets: readonly string[], request: ModelRequest, call: Call): Promise<ModelError> {
    const { accumulator, guard, isCountable } = call;
    const reported = accumulator.usage;
    const generated = accumulator.generatedText();
    const { tooLongMessages = [] } = this.#options;
    const context = { secrets, tooLongMessages, now: Date.now(), wasSent: guard.wasSent };
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
  /** Whether the answer is asked for as a stream. */
  readonly isStreamed: boolean;
  /** What the answer has cost can be counted by what has come of it: it is a stream, or all of it has come. */
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
