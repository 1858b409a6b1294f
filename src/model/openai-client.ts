import type { OpenAI } from "openai";
import { ModelError } from "../errors/index.ts";
import type { Cutter } from "./call-guard.ts";
import { completionsPath, plainRequestHead, type RequestHead } from "./openai-request.ts";
import { wireJson } from "./openai-wire.ts";
import { beginningOf, type HttpAnswer, LONGEST_REFUSAL_MS, WebAnswer } from "./read-answer.ts";

interface OpenaiClientOptions {
  readonly apiKey: string | undefined;
  readonly baseURL: string | undefined;
  readonly organization: string | undefined;
  readonly headers: Readonly<Record<string, string>> | undefined;
  readonly timeoutMs: number;
  readonly fetch: typeof globalThis.fetch | undefined;
}

/** The part of the provider's client that is used: authentication, base URL, headers and error parsing. */
export interface OpenaiClient {
  /** The key it authenticates with and the values of headers, so that messages can be kept free of them. */
  readonly secrets: readonly string[];
  /** Host and path of the server. */
  readonly address: string;
  /** Sends one Chat Completions request; resolves when the answer's headers have come with a good status. */
  send(body: string, cutter: Cutter): Promise<HttpAnswer>;
}

/**
 * Makes what sends the requests of a model, and never retries. The key and the base URL default to `OPENAI_API_KEY` and
 * `OPENAI_BASE_URL`. Throws `ModelError` of kind `configuration` without a key, and for a key, headers or a base URL that cannot be sent.
 */
export async function createOpenaiClient(options: OpenaiClientOptions): Promise<OpenaiClient> {
  // A file that holds a key often ends with a line break.
  const apiKey = (options.apiKey ?? process.env["OPENAI_API_KEY"] ?? "").trim();
  if (apiKey === "") {
    throw notSent(
      "there is no API key: set OPENAI_API_KEY, or pass openaiModel(name, { apiKey }). A server that needs no key takes any text.",
    );
  }
  checkHeaders(apiKey, options);
  const given = options.baseURL ?? process.env["OPENAI_BASE_URL"] ?? "";
  const baseURL = given === "" ? undefined : given;
  if (baseURL !== undefined) checkBaseURL(baseURL);
  let loaded: OpenAI | undefined;
  const client = async (): Promise<OpenAI> => (loaded ??= await loadClient({ ...options, apiKey, baseURL }));
  const plain = options.fetch === undefined ? plainRequestHead({ ...options, apiKey, baseURL }) : undefined;
  const head = plain ?? (options.fetch === undefined ? await headOfClient(await client()) : undefined);
  const send = head === undefined ? await clientSend(await client()) : await directSend(head, client);
  const { host, pathname } = new URL(baseURL ?? "https://api.openai.com/v1");
  return { secrets: secretsIn(apiKey, options.headers), address: host + pathname.replace(/\/$/, ""), send };
}

/** Requests go without a user and password in the address, which is why one that has them is refused. They are never shown. */
function checkBaseURL(baseURL: string): void {
  const url = URL.canParse(baseURL) ? new URL(baseURL) : undefined;
  if (url !== undefined && url.username + url.password !== "") {
    throw notSent(
      'its base URL has a user or a password in it, which is not sent: pass openaiModel(name, { headers: { authorization: "Basic ..." } }) instead.',
    );
  }
  if (url === undefined || !/^https?:\/\//.test(baseURL)) {
    throw notSent(
      `its base URL "${baseURL.replace(/^.*@/s, "***@")}" is no http or https URL. Set baseURL or OPENAI_BASE_URL to one such as "https://api.openai.com/v1".`,
    );
  }
}

/** A value that no request can carry is found before the call, and is not shown. */
function checkHeaders(apiKey: string, { organization, headers }: OpenaiClientOptions): void {
  const given = { authorization: `Bearer ${apiKey}`, "openai-organization": organization ?? "", ...headers };
  for (const [name, value] of Object.entries(given)) {
    try {
      new Headers().set(name, value);
    } catch {
      const what = name === "authorization" ? "its key" : `its header ${JSON.stringify(name)}`;
      throw notSent(`${what} has characters that no HTTP header can have: check apiKey, OPENAI_API_KEY and headers.`);
    }
  }
}

/** The model is set up in a way in which no call of it can be sent. */
function notSent(why: string): ModelError {
  return new ModelError(`The model call was not sent: ${why}`, {
    retryable: false,
    mayHaveBeenSent: false,
    details: { kind: "configuration" },
  });
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
    fetch: withBriefRefusals(options.fetch ?? globalThis.fetch),
  });
}

/** The client reads an answer that refuses a call to its end, which may never come. It gets the beginning as a whole. */
function withBriefRefusals(fetch: typeof globalThis.fetch): typeof globalThis.fetch {
  return async (input, init) => {
    const response = await fetch(input, init);
    const { status, statusText, headers, body } = response;
    if (status < 400 || status > 599 || !body) return response;
    const text = await beginningOf(new WebAnswer(response), LONGEST_REFUSAL_MS);
    return new Response(text, { status, statusText, headers });
  };
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
  const refused = async (answer: HttpAnswer, cutter: Cutter): Promise<never> => {
    const text = await beginningOf(answer, cutter.refused());
    // The client takes an empty value for no JSON.
    const json = wireJson(text) || undefined;
    const maker = await client();
    const { makeStatusError } = maker as unknown as Required<ClientInside>;
    const message = json === undefined ? text : undefined;
    throw makeStatusError.call(maker, answer.status, json, message, answer.headers);
  };
  return (body, cutter) =>
    poster.post(body, cutter).then((answer) => (isGood(answer) ? answer : refused(answer, cutter)), failed);
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
