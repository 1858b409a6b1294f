import { Agent as HttpAgent, type ClientRequest, type RequestOptions, request as httpRequest } from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import { abortReason, HttpResponse } from "./http-response.ts";

const agentOptions = {
  keepAlive: true,
  // An idle connection is dropped before the usual balancer forgets it without a word.
  timeout: 30_000,
  ...(process.env["NODE_USE_ENV_PROXY"] === "1" ? { proxyEnv: process.env } : {}),
} as const;
let httpAgent: HttpAgent | undefined;
let httpsAgent: HttpsAgent | undefined;

/**
 * `fetch` over `node:http` and `node:https` with kept-alive connections: under load it costs about half of what the built-in one does.
 * It has what a model client needs: a string or byte body, abort signals, streamed answers. It follows no redirects
 * and asks for no compression. A failed connection rejects with a `TypeError` whose `cause` is the socket's error.
 */
export function httpFetch(input: string | URL | Request, init: RequestInit = {}): Promise<Response> {
  return new Promise((resolve, reject) => {
    const signal = init.signal ?? undefined;
    if (signal?.aborted === true) {
      reject(abortReason(signal));
      return;
    }
    const url = urlOf(input);
    const body = bodyOf(init.body);
    const outgoing = open(url, { method: init.method ?? "GET", headers: headersOf(init.headers, body) });
    const onAbort = (): void => {
      if (signal !== undefined) reject(abortReason(signal));
      outgoing.destroy();
    };
    signal?.addEventListener("abort", onAbort, { once: true });
    outgoing.on("response", (incoming) => resolve(new HttpResponse(incoming, url.href, signal)));
    outgoing.on("error", (cause) => reject(new TypeError(`fetch failed: ${cause.message}`, { cause })));
    outgoing.on("close", () => signal?.removeEventListener("abort", onAbort));
    outgoing.end(body);
  });
}

function open(url: URL, options: RequestOptions): ClientRequest {
  if (url.protocol === "https:") {
    httpsAgent ??= new HttpsAgent(agentOptions);
    return httpsRequest(url, { ...options, agent: httpsAgent });
  }
  httpAgent ??= new HttpAgent(agentOptions);
  return httpRequest(url, { ...options, agent: httpAgent });
}

function urlOf(input: string | URL | Request): URL {
  if (typeof input === "string") return new URL(input);
  if (input instanceof URL) return input;
  throw new TypeError("httpFetch takes a URL or its text, not a Request object.");
}

function bodyOf(body: RequestInit["body"]): string | Uint8Array | undefined {
  if (body === undefined || body === null) return undefined;
  if (typeof body === "string" || body instanceof Uint8Array) return body;
  throw new TypeError("httpFetch takes a string or a Uint8Array as the body.");
}

function headersOf(given: RequestInit["headers"], body: string | Uint8Array | undefined): Record<string, string> {
  const headers: Record<string, string> = { "accept-encoding": "identity" };
  const source = given instanceof Headers ? given : new Headers(given ?? {});
  for (const [name, value] of source) headers[name] = value;
  if (body !== undefined) headers["content-length"] = String(Buffer.byteLength(body));
  return headers;
}
