import type { OpenAI } from "openai";
import { ModelError } from "../errors/index.ts";
import type { ModelFailureKind } from "./call-failure.ts";
import type { CallGuard } from "./call-guard.ts";
import { beginningOf, LONGEST_REFUSAL_MS } from "./read-answer.ts";
import type { Delivery } from "./undici-fetch.ts";

/** How a client is made where none is given. */
interface ConnectionOptions {
  readonly apiKey: string | undefined;
  readonly baseURL: string | undefined;
  readonly organization: string | undefined;
  readonly headers: Readonly<Record<string, string>> | undefined;
  readonly fetch: typeof globalThis.fetch | undefined;
  readonly timeoutMs: number;
}

/** A client, as one model uses it. */
export interface OpenaiClient {
  /** Host and path of the server. */
  readonly address: string;
  /** Keys, and values of headers that may be some, so that messages can be kept free of them. */
  secrets(): readonly string[];
  /**
   * Sends one Chat Completions request, once; resolves when the response's headers have come with a good status. The guard's signal
   * ends it.
   */
  send(body: object, guard: CallGuard): Promise<Response>;
}

/** The path of Chat Completions below the base URL. */
const completionsPath = "/chat/completions";

/**
 * Takes a client of the user as it is. Throws `ModelError` of kind `configuration` for a base URL that cannot be used.
 */
export function givenClient(client: OpenAI): OpenaiClient {
  const { baseURL } = client;
  checkBaseURL(baseURL, "the base URL of its client");
  return {
    address: addressOf(baseURL),
    // A key that a function gives is known once the client has asked for it.
    secrets: () => longestFirst([client.apiKey, client.adminAPIKey].filter((key) => typeof key === "string")),
    send: (body, { signal }) =>
      client.post(completionsPath, { body, signal, maxRetries: 0 }).asResponse().catch(failedBy(client)),
  };
}

/**
 * Makes a client. The key and the base URL default to `OPENAI_API_KEY` and `OPENAI_BASE_URL`. Throws `ModelError` of kind
 * `configuration` without a key, and for a key, headers or a base URL that cannot be sent.
 */
export async function ownClient(options: ConnectionOptions): Promise<OpenaiClient> {
  // A file that holds a key often ends with a line break.
  const apiKey = (options.apiKey ?? process.env["OPENAI_API_KEY"] ?? "").trim();
  if (apiKey === "") {
    throw notSent(
      "there is no API key: set OPENAI_API_KEY, or pass openaiModel(name, { apiKey }). A server that needs no key takes any text.",
    );
  }
  checkHeaders(apiKey, options);
  const given = options.baseURL ?? process.env["OPENAI_BASE_URL"] ?? "";
  const baseURL = given === "" ? "https://api.openai.com/v1" : given;
  checkBaseURL(baseURL, "its base URL");
  const { OpenAI } = await import("openai");
  const send =
    options.fetch === undefined ? (await import("./undici-fetch.ts")).undiciFetch : foreignSend(options.fetch);
  const client = new OpenAI({
    apiKey,
    baseURL,
    ...(options.organization === undefined ? {} : { organization: options.organization }),
    ...(options.headers === undefined ? {} : { defaultHeaders: options.headers }),
    timeout: options.timeoutMs,
    maxRetries: 0,
    fetch: withBriefRefusals(send),
  });
  const isOwnFetch = options.fetch === undefined;
  const known = secretsIn(apiKey, options.headers);
  return {
    address: addressOf(baseURL),
    secrets: () => known,
    send: (body, guard) => {
      // A `fetch` of the user's does not tell.
      guard.wasSent = isOwnFetch ? false : undefined;
      const fetchOptions: Omit<CallInit, "body" | "headers" | "method" | "signal"> = { guard };
      return client.post(completionsPath, { body, maxRetries: 0, fetchOptions }).asResponse().catch(failedBy(client));
    },
  };
}

/** Requests go without a user and password in the address, which is why one that has them is refused. They are never shown. */
function checkBaseURL(baseURL: string, what: string): void {
  const url = URL.canParse(baseURL) ? new URL(baseURL) : undefined;
  if (url !== undefined && url.username + url.password !== "") {
    throw notSent(
      `${what} has a user or a password in it, which is not sent: give the header authorization: "Basic ..." instead.`,
    );
  }
  if (url === undefined || !/^https?:\/\//.test(baseURL)) {
    throw notSent(
      `${what} "${baseURL.replace(/^.*@/s, "***@")}" is invalid; expected an http or https URL. Set baseURL or OPENAI_BASE_URL to one such as "https://api.openai.com/v1".`,
    );
  }
}

/** A value that no request can carry is found before the call, and is not shown. */
function checkHeaders(apiKey: string, { organization, headers }: ConnectionOptions): void {
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

/** Errors of the client that say more than those of its `fetch`. */
function failedBy(client: OpenAI): (error: unknown) => never {
  const { APIConnectionTimeoutError, APIError, OpenAIError } = client.constructor as typeof OpenAI;
  return (error) => {
    if (error instanceof APIConnectionTimeoutError && isAborted(error.cause)) {
      const words = `The model server did not begin to answer within ${client.timeout} ms (timeout of the client).`;
      throw new ModelError(words, {
        retryable: true,
        mayHaveBeenSent: true,
        cause: error,
        details: { kind: "timeout" },
      });
    }
    // Before it sends anything, it asks for the key, where a function gives one.
    if (error instanceof OpenAIError && !(error instanceof APIError)) {
      const words = `The model call was not sent: its client failed before it: ${error.message}`;
      throw new ModelError(words, {
        retryable: true,
        mayHaveBeenSent: false,
        cause: error,
        details: { kind: "client" satisfies ModelFailureKind },
      });
    }
    throw error;
  };
}

/** Whether the client's own time limit ended a `fetch`. */
function isAborted(cause: unknown): boolean {
  return cause instanceof Error && cause.name === "AbortError";
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
function secretsIn(apiKey: string, headers: ConnectionOptions["headers"]): readonly string[] {
  const given = Object.entries(headers ?? {}).filter(([name]) => secretName.test(name));
  const values = given.flatMap(([, value]) => [value.trim(), value.trim().replace(/^(bearer|basic|token)\s+/i, "")]);
  return longestFirst([apiKey, ...values]);
}

/** So that of a secret that holds another one no part is left. */
function longestFirst(secrets: readonly string[]): readonly string[] {
  return secrets.toSorted((one, other) => other.length - one.length);
}

const secretName = /auth|key|token|secret|password|cookie|credential|signature|session/i;

function addressOf(baseURL: string): string {
  const { host, pathname } = new URL(baseURL);
  return host + pathname.replace(/\/$/, "");
}

/**
 * What the `fetch` of a client of ours gets. The guard's signal ends the call, and the guard has the time limit of the client. The client
 * itself gets no signal, because it would combine it with one of its own for each call.
 */
interface CallInit extends RequestInit {
  readonly guard?: CallGuard;
}

type Send = (input: string | URL | Request, init?: RequestInit, delivery?: Delivery) => Promise<Response>;

/** A `fetch` of the user gets nothing but what is its own. */
function foreignSend(fetch: typeof globalThis.fetch): Send {
  return (input, init) => fetch(input, init);
}

/**
 * The client reads the body of a refusal to its end, which may never come. It gets the beginning as a whole, for which the time limits of
 * the call stand still.
 */
function withBriefRefusals(send: Send): typeof globalThis.fetch {
  return async (input, { guard, ...init }: CallInit = {}) => {
    const signal = guard?.signal ?? init.signal ?? null;
    const response = await send(input, { ...init, signal }, guard);
    if (response.ok || response.body === null) return response;
    const { status, statusText, headers } = response;
    const text = await beginningOf(response, guard?.refused() ?? LONGEST_REFUSAL_MS);
    return new Response(text, { status, statusText, headers });
  };
}
