import type { OpenAI } from "openai";
import { ModelError } from "../errors/index.ts";
import type { ModelFailureKind } from "./call-failure.ts";
import type { CallGuard } from "./call-guard.ts";
import { beginningOf, LONGEST_REFUSAL_MS } from "./read-answer.ts";
import type { Delivery } from "./undici-fetch.ts";

/** Options for a client that this package creates. */
interface ConnectionOptions {
  readonly apiKey: string | undefined;
  readonly baseURL: string | undefined;
  readonly organization: string | undefined;
  readonly headers: Readonly<Record<string, string>> | undefined;
  readonly fetch: typeof globalThis.fetch | undefined;
  readonly timeoutMs: number;
}

/** A client as one model uses it. */
export interface OpenaiClient {
  /** Host and path of the server. */
  readonly address: string;
  /** Keys, and header values that may be keys; removed from messages. */
  secrets(): readonly string[];
  /**
   * Posts one request to a path below the base URL, once; resolves when the headers of a successful response have arrived. The guard's
   * signal ends it.
   */
  send(call: { readonly path: string; readonly body: object }, guard: CallGuard): Promise<Response>;
}

/** Wraps the user's client. Throws `ModelError` of kind `configuration` for an unusable base URL. */
export function givenClient(client: OpenAI): OpenaiClient {
  const { baseURL } = client;
  checkBaseURL(baseURL, "the base URL of its client");
  return {
    address: addressOf(baseURL),
    // A key that comes from a function is known only after the client has called it.
    secrets: () => longestFirst([client.apiKey, client.adminAPIKey].filter((key) => typeof key === "string")),
    send: ({ path, body }, { signal }) =>
      client.post(path, { body, signal, maxRetries: 0 }).asResponse().catch(failedBy(client)),
  };
}

/**
 * Creates a client. The key and the base URL default to `OPENAI_API_KEY` and `OPENAI_BASE_URL`. Throws `ModelError` of kind
 * `configuration` if the key is missing, and for an invalid key, header or base URL.
 */
export async function ownClient(options: ConnectionOptions): Promise<OpenaiClient> {
  // Keys read from a file often end with a line break.
  const apiKey = (options.apiKey ?? process.env["OPENAI_API_KEY"] ?? "").trim();
  if (apiKey === "") {
    throw notSent(
      "the API key is missing: set OPENAI_API_KEY, or pass openaiModel(name, { apiKey }). For a server without keys, pass any text.",
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
    send: ({ path, body }, guard) => {
      // It is unknown when a user's `fetch` sends the bytes.
      guard.wasSent = isOwnFetch ? false : undefined;
      const fetchOptions: Omit<CallInit, "body" | "headers" | "method" | "signal"> = { guard };
      return client.post(path, { body, maxRetries: 0, fetchOptions }).asResponse().catch(failedBy(client));
    },
  };
}

/** A user or password in the URL is never sent, so such a URL is refused. Neither is shown in messages. */
function checkBaseURL(baseURL: string, what: string): void {
  const url = URL.canParse(baseURL) ? new URL(baseURL) : undefined;
  if (url !== undefined && url.username + url.password !== "") {
    throw notSent(
      `${what} contains a user or password, which is not sent: set the header authorization: "Basic ..." instead.`,
    );
  }
  if (url === undefined || !/^https?:\/\//.test(baseURL)) {
    throw notSent(
      `${what} "${baseURL.replace(/^.*@/s, "***@")}" is invalid; expected an http or https URL. Set baseURL or OPENAI_BASE_URL to one such as "https://api.openai.com/v1".`,
    );
  }
}

/** Finds values that HTTP cannot transmit before the call, without showing them. */
function checkHeaders(apiKey: string, { organization, headers }: ConnectionOptions): void {
  const given = { authorization: `Bearer ${apiKey}`, "openai-organization": organization ?? "", ...headers };
  for (const [name, value] of Object.entries(given)) {
    try {
      new Headers().set(name, value);
    } catch {
      const what = name === "authorization" ? "its key" : `its header ${JSON.stringify(name)}`;
      throw notSent(
        `${what} contains characters that are not allowed in an HTTP header: check apiKey, OPENAI_API_KEY and headers.`,
      );
    }
  }
}

/** Converts errors that the client itself throws; errors of its `fetch` pass through. */
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
    // The client calls the user's key function before it sends anything.
    if (error instanceof OpenAIError && !(error instanceof APIError)) {
      const words = `The model call was not sent: its client failed: ${error.message}`;
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

/** Whether the client's own timeout ended a `fetch`. */
function isAborted(cause: unknown): boolean {
  return cause instanceof Error && cause.name === "AbortError";
}

/** An error for a configuration with which no call can be sent. */
function notSent(why: string): ModelError {
  return new ModelError(`The model call was not sent: ${why}`, {
    retryable: false,
    mayHaveBeenSent: false,
    details: { kind: "configuration" },
  });
}

/** The key, and the values of headers whose names suggest credentials. */
function secretsIn(apiKey: string, headers: ConnectionOptions["headers"]): readonly string[] {
  const given = Object.entries(headers ?? {}).filter(([name]) => secretName.test(name));
  const values = given.flatMap(([, value]) => [value.trim(), value.trim().replace(/^(bearer|basic|token)\s+/i, "")]);
  return longestFirst([apiKey, ...values]);
}

/** Longest first, so that a secret which contains another is removed completely. */
function longestFirst(secrets: readonly string[]): readonly string[] {
  return secrets.toSorted((one, other) => other.length - one.length);
}

const secretName = /auth|key|token|secret|password|cookie|credential|signature|session/i;

/** Host and path: no user, no password, no query. */
export function addressOf(baseURL: string): string {
  const { host, pathname } = new URL(baseURL);
  return host + pathname.replace(/\/$/, "");
}

/**
 * Init of the `fetch` of a client that this package creates. The guard's signal ends the call, and the guard applies the client's
 * timeout. The client itself gets no signal, because it would combine it with a new one for each call.
 */
interface CallInit extends RequestInit {
  readonly guard?: CallGuard;
}

type Send = (input: string | URL | Request, init?: RequestInit, delivery?: Delivery) => Promise<Response>;

/** Calls the user's `fetch` with standard arguments only. */
function foreignSend(fetch: typeof globalThis.fetch): Send {
  return (input, init) => fetch(input, init);
}

/**
 * The client reads the body of a refusal to its end, which may never come. So it gets only the beginning, as a complete body; while that
 * is read, the time limits of the call are stopped.
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
