import type { OpenAI } from "openai";
import { InvalidInputError, ModelError } from "../errors/index.ts";
import {
  type Door,
  functionRule,
  type LightSignal,
  nameRule,
  oneOfRule,
  optionsOf,
  recordRule,
  textRule,
  wholeNumberRule,
} from "../base/index.ts";
import { type JsonObject, type ModelRequest, type ModelResponse, takeObject } from "../state/index.ts";
import { AnswerAccumulator } from "./accumulator.ts";
import { callFailure } from "./call-failure.ts";
import { CallGuard, type Cutter } from "./call-guard.ts";
import { completeUsage, outputTokensOf } from "./usage.ts";
import { type GenerateOptions, type LanguageModel, lightSignalOf } from "./language-model.ts";
import { completionsPath, plainRequestHead, type RequestHead } from "./openai-request.ts";
import { type WireBody, type WireOptions, wireBody } from "./openai-wire.ts";
import { beginningOf, type HttpAnswer, isEventStream, readEvents, readWhole, WebAnswer } from "./read-answer.ts";
import { imageTokenBound, countPromptTokens, promptByteBound } from "./token-count.ts";

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
  readonly organization?: string | undefined;
  /** Sent with every request. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Tokens that prompt and answer may have together. */
  readonly contextWindow?: number | undefined;
  /** Longest silence inside an answer, in milliseconds. Default 60,000. */
  readonly stallTimeoutMs?: number | undefined;
  /** Longest wait for a streamed answer to begin, in milliseconds. Default 60,000. A whole answer begins only when it is complete: `requestTimeoutMs` bounds it. */
  readonly headersTimeoutMs?: number | undefined;
  /** Longest time for the whole call, in milliseconds. Default 600,000. */
  readonly requestTimeoutMs?: number | undefined;
  /** Sends the requests, through the `openai` client, in place of the own connections. Calls then cost several times the processor time. */
  readonly fetch?: typeof globalThis.fetch | undefined;
  /** Fields for the request's body, set last. */
  readonly extraBody?: JsonObject | undefined;
  /** The field that carries `maxOutputTokens`. Default `max_completion_tokens`; some servers only know `max_tokens`. */
  readonly outputLimitField?: "max_completion_tokens" | "max_tokens" | undefined;
  /** Tokens to reserve for an image. Default 2,500. */
  readonly imageTokens?: number | undefined;
}

/** Longest delay of a timer. */
const longestDelayMs = 2_147_483_647;

/**
 * A model behind a Chat Completions server: OpenAI, or any compatible one. The `openai` package is loaded when it is needed.
 * Throws `InvalidInputError` for bad options at once, and on first use when there is no key.
 */
export function openaiModel(name: string, given?: OpenaiModelOptions): LanguageModel {
  if (typeof name !== "string" || name.trim() === "") {
    throw new InvalidInputError('openaiModel takes a model\'s name as its first argument, for instance "gpt-5-mini".');
  }
  return new OpenaiModel(name, optionsOf<OpenaiModelOptions>(given, "openaiModel()", modelDoor));
}

const delayRule = wholeNumberRule(1, longestDelayMs);

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
  readonly #headersTimeoutMs: number;
  readonly #requestTimeoutMs: number;
  readonly #imageTokens: number;
  readonly #wholeOptions: WireOptions;
  readonly #streamOptions: WireOptions;
  #client: OpenaiClient | undefined;

  constructor(name: string, options: OpenaiModelOptions) {
    this.name = name;
    this.provider = options.provider ?? "openai";
    this.contextWindow = options.contextWindow;
    this.#options = options;
    this.#stallTimeoutMs = options.stallTimeoutMs ?? 60_000;
    this.#headersTimeoutMs = options.headersTimeoutMs ?? 60_000;
    this.#requestTimeoutMs = options.requestTimeoutMs ?? 600_000;
    this.#imageTokens = options.imageTokens ?? imageTokenBound;
    const { extraBody = {}, outputLimitField = "max_completion_tokens" } = options;
    this.#wholeOptions = { model: name, stream: false, extraBody, outputLimitField };
    this.#streamOptions = { ...this.#wholeOptions, stream: true };
  }

  countPromptTokens(request: ModelRequest): number | Promise<number> {
    return countPromptTokens(request, this.#imageTokens);
  }

  boundPromptTokens(request: ModelRequest): number {
    return promptByteBound(request, this.#imageTokens);
  }

  async generate(request: ModelRequest, options: GenerateOptions): Promise<ModelResponse> {
    const signal = lightSignalOf(options);
    const client = this.#client ?? (await this.#connect());
    if (signal.aborted) throw notSent(signal);
    const accumulator = new AnswerAccumulator();
    const body = wireBody(request, options.onDelta === undefined ? this.#wholeOptions : this.#streamOptions);
    const guard = new CallGuard(signal, {
      requestTimeoutMs: this.#requestTimeoutMs,
      headersTimeoutMs: body.isStreamed ? this.#headersTimeoutMs : undefined,
      stallTimeoutMs: this.#stallTimeoutMs,
    });
    const call: Call = { accumulator, guard, options, isStreamed: false };
    try {
      await guard.race(this.#exchange(client, body, call));
    } catch (error) {
      // After the finish reason, a broken end only loses the usage; another call would cost more.
      const isTransport = guard.cut !== undefined || !(error instanceof ModelError);
      const isUsable = accumulator.isFinished && isTransport && !signal.aborted;
      if (!isUsable) throw await this.#failure(guard.cut ?? error, client.secrets, request, call);
    } finally {
      guard.end();
    }
    const answer = accumulator.answer(this.name);
    const { usage: reported } = answer;
    const generated = accumulator.generatedText();
    const countInput = (): number | Promise<number> => this.countPromptTokens(request);
    return { ...answer, usage: await completeUsage({ reported, generated, countInput }) };
  }

  async #connect(): Promise<OpenaiClient> {
    const { apiKey, baseURL, organization, headers, fetch } = this.#options;
    const timeoutMs = this.#requestTimeoutMs;
    this.#client = await createOpenaiClient({ apiKey, baseURL, organization, headers, fetch, timeoutMs });
    return this.#client;
  }

  async #exchange(client: OpenaiClient, body: WireBody, call: Call): Promise<void> {
    const { accumulator, guard, options } = call;
    const received = await client.send(body.text, guard);
    call.isStreamed = isEventStream(received, body.isStreamed);
    const arrived = call.isStreamed ? undefined : received.arrivedText();
    if (arrived === undefined) {
      guard.watchSilence();
      const read = call.isStreamed ? readEvents : readWhole;
      await read(received, accumulator, {
        onDelta: options.onDelta,
        onBytes: () => guard.heard(),
        onLastEvent: () => guard.expectEnd(),
      });
    } else accumulator.add(JSON.parse(arrived), options.onDelta);
    if (accumulator.isFinished) return;
    throw new ModelError("The model's answer ended before it was complete: no finish reason came.", {
      retryable: true,
      mayHaveBeenSent: true,
      details: { kind: "incomplete" },
    });
  }

  async #failure(error: unknown, secrets: readonly string[], request: ModelRequest, call: Call): Promise<ModelError> {
    const { accumulator, isStreamed } = call;
    const reported = accumulator.usage;
    const generated = accumulator.generatedText();
    // A server that refuses a call in its answer bills nothing but what it has sent, and the cost of a whole answer that was cut
    // cannot be known.
    const isServers = error instanceof ModelError && error.status !== undefined;
    const isKnown = isServers ? generated !== "" : isStreamed;
    if (!isKnown && reported === undefined) return callFailure(error, { partial: undefined, secrets, now: Date.now() });
    const { tokens } = await outputTokensOf(reported?.outputTokens, generated);
    const inputTokens = reported?.inputTokens ?? (await this.countPromptTokens(request));
    return callFailure(error, { partial: { inputTokens, outputTokens: tokens }, secrets, now: Date.now() });
  }
}

interface Call {
  readonly accumulator: AnswerAccumulator;
  readonly guard: CallGuard;
  readonly options: GenerateOptions;
  /** The answer has begun, as a stream. */
  isStreamed: boolean;
}

function notSent(signal: LightSignal): ModelError {
  return new ModelError("The model call was aborted before it was sent.", {
    retryable: false,
    mayHaveBeenSent: false,
    cause: signal.reason,
    details: { kind: "aborted" },
  });
}

interface OpenaiClientOptions {
  readonly apiKey: string | undefined;
  readonly baseURL: string | undefined;
  readonly organization: string | undefined;
  readonly headers: Readonly<Record<string, string>> | undefined;
  readonly timeoutMs: number;
  readonly fetch: typeof globalThis.fetch | undefined;
}

/** The part of the provider's client that is used: authentication, base URL, headers and error parsing. */
interface OpenaiClient {
  /** The key it authenticates with and the values of headers, so that messages can be kept free of them. */
  readonly secrets: readonly string[];
  /** Sends one Chat Completions request; resolves when the answer's headers have come with a good status. */
  send(body: string, cutter: Cutter): Promise<HttpAnswer>;
}

/**
 * Makes what sends the requests of a model, and never retries. The key and the base URL default to `OPENAI_API_KEY` and
 * `OPENAI_BASE_URL`. Throws `InvalidInputError` without a key or with an invalid base URL.
 */
async function createOpenaiClient(options: OpenaiClientOptions): Promise<OpenaiClient> {
  // A file that holds a key often ends with a line break.
  const apiKey = (options.apiKey ?? process.env["OPENAI_API_KEY"] ?? "").trim();
  if (apiKey === "") {
    throw new InvalidInputError(
      "No API key for the model: set OPENAI_API_KEY, or pass openaiModel(name, { apiKey }). A server that needs no key takes any text.",
    );
  }
  const given = options.baseURL ?? process.env["OPENAI_BASE_URL"] ?? "";
  const baseURL = given === "" ? undefined : given;
  if (baseURL !== undefined) checkBaseURL(baseURL);
  let loaded: OpenAI | undefined;
  const client = async (): Promise<OpenAI> => (loaded ??= await loadClient({ ...options, apiKey, baseURL }));
  const plain = options.fetch === undefined ? plainRequestHead({ ...options, apiKey, baseURL }) : undefined;
  const head = plain ?? (options.fetch === undefined ? await headOfClient(await client()) : undefined);
  const send = head === undefined ? await clientSend(await client()) : await directSend(head, client);
  return { secrets: secretsIn(apiKey, options.headers), send };
}

/** Requests go without a user and password in the address, which is why one that has them is refused. They are never shown. */
function checkBaseURL(baseURL: string): void {
  const url = URL.canParse(baseURL) ? new URL(baseURL) : undefined;
  if (url !== undefined && url.username + url.password !== "") {
    throw new InvalidInputError(
      'The model\'s base URL has a user or a password in it, which is not sent: pass openaiModel(name, { headers: { authorization: "Basic ..." } }) instead.',
    );
  }
  if (!/^https?:\/\//.test(baseURL)) {
    throw new InvalidInputError(
      `The model's base URL "${baseURL.replace(/^.*@/s, "***@")}" is no http or https URL; right is for instance "https://api.openai.com/v1".`,
    );
  }
}

/** The key, and the values of headers that may be one, by their names. */
function secretsIn(apiKey: string, headers: OpenaiClientOptions["headers"]): readonly string[] {
  const given = Object.entries(headers ?? {}).filter(([name]) => secretName.test(name));
  const values = given.flatMap(([, value]) => [value.trim(), value.trim().replace(/^(bearer|basic|token)\s+/i, "")]);
  // Longest first, so that of one that holds another no part is left.
  return [apiKey, ...values].toSorted((one, other) => other.length - one.length);
}

const secretName = /auth|key|token|secret|password|cookie|credential|signature|session/i;

/** Loads the `openai` package and makes a client of it. */
async function loadClient(options: OpenaiClientOptions): Promise<OpenAI> {
  const { OpenAI } = await import("openai");
  return new OpenAI({
    apiKey: options.apiKey,
    baseURL: options.baseURL,
    ...(options.organization === undefined ? {} : { organization: options.organization }),
    ...(options.headers === undefined ? {} : { defaultHeaders: options.headers }),
    timeout: options.timeoutMs,
    maxRetries: 0,
    ...(options.fetch === undefined ? {} : { fetch: options.fetch }),
  });
}

/** `chat.completions.create` does the same, but takes an object, and writes out the whole conversation each time. */
async function clientSend(client: OpenAI): Promise<OpenaiClient["send"]> {
  // The client takes a text only with its type, for which it would take the user's if there is one.
  const type = (await builtRequest(client))?.headers.get("content-type") ?? "application/json";
  const headers = { "content-type": type };
  return async (body, { signal }) =>
    new WebAnswer(await client.post(completionsPath, { body, signal, headers }).asResponse());
}

/** What is used of the client's inside. */
interface ClientInside {
  readonly idempotencyHeader?: string;
  readonly makeStatusError?: (status: number, error: unknown, message: string | undefined, headers: Headers) => Error;
}

/**
 * Address and headers of each call, as the client gives them. Undefined if it does something that would be missed without it: it
 * logs, or it is built otherwise than is known here. Then everything goes through it.
 */
async function headOfClient(client: OpenAI): Promise<RequestHead | undefined> {
  const { idempotencyHeader, makeStatusError } = client as unknown as ClientInside;
  const isLogging = client.logLevel === "info" || client.logLevel === "debug";
  if (isLogging || idempotencyHeader !== undefined || makeStatusError === undefined) return undefined;
  return await builtRequest(client);
}

/**
 * Sends what the client would send, without passing through it: five sixths of its time go into what never changes. It makes the
 * errors, and is loaded for the first one if it was not yet.
 */
async function directSend(head: RequestHead, client: () => Promise<OpenAI>): Promise<OpenaiClient["send"]> {
  const { Poster } = await import("./http.ts");
  const poster = await Poster.open(head.url, head.headers);
  const failed = async (error: unknown): Promise<never> => {
    // The reason of a cut.
    if (error instanceof ModelError) throw error;
    const { APIConnectionError, APIConnectionTimeoutError } = (await client()).constructor as typeof OpenAI;
    const cause = error instanceof Error ? error : new Error(String(error));
    const isTimeout = /timed? ?out/i.test(String(cause) + String(cause.cause));
    throw isTimeout ? Object.assign(new APIConnectionTimeoutError(), { cause }) : new APIConnectionError({ cause });
  };
  const refused = async (answer: HttpAnswer): Promise<never> => {
    const text = await beginningOf(answer);
    const json = parsed(text);
    const maker = await client();
    const { makeStatusError } = maker as unknown as Required<ClientInside>;
    const message = json === undefined ? text : undefined;
    throw makeStatusError.call(maker, answer.status, json, message, answer.headers);
  };
  return (body, cutter) =>
    poster.post(body, cutter).then((answer) => (isGood(answer) ? answer : refused(answer)), failed);
}

function isGood({ status }: HttpAnswer): boolean {
  return status >= 200 && status < 300;
}

/** What the client would send; undefined if it has parts that are not known here. */
async function builtRequest(client: OpenAI): Promise<{ readonly url: string; readonly headers: Headers } | undefined> {
  try {
    const { req, url } = await client.buildRequest({ method: "post", path: completionsPath, body: {} });
    const { method, headers, body, ...others } = req;
    const isKnown =
      method === "post" && body === "{}" && headers instanceof Headers && Object.keys(others).length === 0;
    return isKnown ? { url, headers } : undefined;
  } catch {
    // Sending a call says what is wrong.
    return undefined;
  }
}

/** The value of a JSON text; undefined if it is none, or an empty value. */
function parsed(text: string): unknown {
  try {
    return (JSON.parse(text) as unknown) || undefined;
  } catch {
    return undefined;
  }
}
