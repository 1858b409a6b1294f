import { lookup } from "node:dns/promises";
import { type IncomingMessage, request as httpRequest, type RequestOptions } from "node:http";
import { request as httpsRequest } from "node:https";
import { isIP, type LookupFunction } from "node:net";
import { callbackify } from "node:util";
import { wordsOfThrown } from "../base/index.ts";
import { isLoopbackName, isPublicAddress } from "../net/index.ts";
import { McpServerError } from "./mcp-server-error.ts";

export interface OAuthFetchRules {
  /** Address of the MCP server, which names the other addresses. */
  readonly server: URL;
  /** Origins that may be in private networks. */
  readonly origins: ReadonlySet<string>;
  /** Ends all requests of one login. */
  readonly signal: AbortSignal;
}

/** Largest answer of an authorization server, in bytes. */
const MAX_BYTES = 1_000_000;

/** Why no token was got. */
export interface TokenFailure {
  /** Whether the authorization server refused what it was given; otherwise it gave no proper answer, and may do so later. */
  readonly isRefused: boolean;
  /** The error's code of a refusal, such as `invalid_grant`; otherwise a sentence. */
  readonly words: string;
}

/** A `fetch` for authorization servers. */
export interface OAuthFetch {
  readonly fetch: (input: string | URL, init?: RequestInit) => Promise<Response>;
  failure(): TokenFailure | undefined;
}

/**
 * A `fetch` for addresses that an MCP server has named.
 *
 * Invariants
 * 1. Unless its origin is that of the MCP server, or listed, a request uses TLS and connects to public addresses only. An MCP server on
 *    this machine may name addresses on this machine.
 * 2. The checked addresses are the ones used for the connection: a name is resolved once for each request.
 * 3. Redirects are not followed here; answers have a limit in bytes; all requests of a login share one time limit.
 * 4. The official client reads only tokens from answers to token requests. For every other answer it gets an error after which it
 *    rejects: by itself it would send a code twice, log the answer, and begin another login for a server that is down.
 */
export function oauthFetch(rules: OAuthFetchRules): OAuthFetch {
  let failure: TokenFailure | undefined;
  const fail = (words: string): McpServerError => {
    failure ??= { isRefused: false, words };
    return new McpServerError(words);
  };
  return {
    failure: () => failure,
    fetch: async (input, init = {}) => {
      const url = new URL(input);
      try {
        assertReachable(rules, url);
      } catch (error) {
        throw fail(wordsOfThrown(error));
      }
      const body = init.method === "POST" ? bodyOf(init.body) : undefined;
      const isForToken = new URLSearchParams(body ?? "").has("grant_type");
      try {
        const answer = await exchange(rules, url, { headers: new Headers(init.headers), body });
        if (!isForToken) return responseOf(answer);
        failure = tokenFailureOf(answer, url);
        return failure === undefined ? responseOf(answer) : refusedRequest();
      } catch (error) {
        const words = `${url.origin} gave no answer: ${rules.signal.aborted ? "the time is over" : networkWords(error)}`;
        if (!isForToken) throw new McpServerError(words);
        failure = { isRefused: false, words };
        return refusedRequest();
      }
    },
  };
}

/** `undefined` for an answer with tokens. */
function tokenFailureOf({ status, text }: Answer, { origin }: URL): TokenFailure | undefined {
  const answered = jsonOf(text);
  const { access_token: token, error } = answered ?? {};
  const isOk = status >= 200 && status < 300;
  if (isOk && typeof token === "string" && token !== "") return undefined;
  if (status >= 500 || status === 429) return { isRefused: false, words: `${origin} answered with status ${status}` };
  // Other texts of the answer may contain what was sent.
  if (typeof error === "string" && /^[a-z_]{1,60}$/.test(error)) return { isRefused: true, words: error };
  if (isOk) return { isRefused: false, words: `${origin} answered without a token` };
  return { isRefused: true, words: `status ${status}` };
}

/** An answer after which the official client rejects. */
function refusedRequest(): Response {
  return Response.json({ error: "invalid_request" }, { status: 400 });
}

/** Checks an address without resolving its name. Throws `McpServerError`. */
export function assertReachable({ server, origins }: Omit<OAuthFetchRules, "signal">, url: URL): void {
  if (isTrusted({ server, origins }, url)) return;
  const name = nameIn(url);
  if (url.protocol !== "https:") {
    throw new McpServerError(`the MCP server names ${shown(url)} for its authorization, which is without TLS`);
  }
  if (/(?:^|\.)localhost\.?$/.test(name) || (isIP(name) !== 0 && !isPublicAddress(name))) {
    throw new McpServerError(
      `the MCP server names ${shown(url)} for its authorization, which is not a public address; list it in origins if it is right`,
    );
  }
}

/** Whether an address needs neither TLS nor a public address. */
function isTrusted({ server, origins }: Omit<OAuthFetchRules, "signal">, url: URL): boolean {
  if (url.protocol !== "https:" && url.protocol !== "http:") return false;
  if (url.origin === server.origin || origins.has(url.origin)) return true;
  return isLoopbackName(nameIn(server)) && isLoopbackName(nameIn(url));
}

interface Sent {
  readonly headers: Headers;
  readonly body: string | undefined;
}

interface Answer {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly text: string;
}

async function exchange(rules: OAuthFetchRules, url: URL, { headers, body }: Sent): Promise<Answer> {
  const options: RequestOptions = {
    method: body === undefined ? "GET" : "POST",
    headers: {
      ...Object.fromEntries(headers),
      ...(body === undefined ? {} : { "content-length": Buffer.byteLength(body) }),
      connection: "close",
    },
    lookup: lookupFor(rules, url),
    // No pool: a pooled connection could lead to an address that was checked for another request.
    agent: false,
    signal: rules.signal,
  };
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const request = (url.protocol === "https:" ? httpsRequest : httpRequest)(url, options, (response) => {
    textOf(response).then(
      (text) => resolve({ status: response.statusCode ?? 0, headers: response.headers, text }),
      reject,
    );
  });
  request.on("error", reject);
  // A protocol upgrade ends the connection without an answer.
  request.on("close", () => reject(new Error("the connection was closed without an answer")));
  request.end(body);
  return await promise;
}

async function textOf(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    size += chunk.byteLength;
    if (size > MAX_BYTES) throw new Error(`the answer has more than ${MAX_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** Checks the addresses of a name for the connection. Node calls it only for names; literal addresses were checked before. */
function lookupFor(rules: OAuthFetchRules, url: URL): LookupFunction {
  const checked = async (hostname: string) => {
    const found = await lookup(hostname, { all: true, verbatim: true });
    if (!isTrusted(rules, url) && found.some(({ address }) => !isPublicAddress(address))) {
      throw new Error("its host name has an address that is not public; list it in origins if it is right");
    }
    return found;
  };
  const ask = callbackify(checked);
  return (hostname, { all }, callback) => {
    ask(hostname, (error, found) => {
      const [first] = error ? [] : found;
      if (all === true) callback(error, error ? [] : found);
      else callback(error, first?.address ?? "", first?.family);
    });
  };
}

function responseOf({ status, headers, text }: Answer): Response {
  const { "content-type": type, location } = headers;
  return new Response(status === 204 || status === 205 || status === 304 ? null : text, {
    status: Math.max(200, status),
    headers: {
      ...(type === undefined ? {} : { "content-type": type }),
      ...(location === undefined ? {} : { location }),
    },
  });
}

function jsonOf(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Readonly<Record<string, unknown>>) : undefined;
  } catch {
    return undefined;
  }
}

function bodyOf(body: RequestInit["body"]): string {
  return typeof body === "string" || body instanceof URLSearchParams ? String(body) : "";
}

function networkWords(error: unknown): string {
  // If all addresses fail, the error itself has no message.
  const first: unknown = error instanceof AggregateError ? error.errors[0] : error;
  return first instanceof Error && first.message !== "" ? first.message : "the request failed";
}

function nameIn({ hostname }: URL): string {
  return hostname.replace(/^\[(.*)\]$/, "$1");
}

/** The address without its query, which may be long. */
function shown({ protocol, host, pathname }: URL): string {
  return `${protocol}//${host}${pathname}`.slice(0, 300);
}
