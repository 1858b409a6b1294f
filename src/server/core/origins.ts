import { isLoopbackName } from "../../net/index.ts";
import { ServerError } from "./failures.ts";

export interface OriginRules {
  /** Allowed origins of web pages on other hosts: `https://app.example.com`. */
  readonly cors: readonly string[];
  /** Allowed values of `Host`, in lower case; `undefined` allows any. */
  readonly hosts: () => readonly string[] | undefined;
  /** Headers of the surfaces that pages may send and read. */
  readonly headers: readonly string[];
  /** The server requires no token, so only clients on this machine may call it. */
  readonly loopbackOnly: boolean;
}

const exposedHeaders = ["x-request-id", "idempotency-replayed", "retry-after", "location"];
const allowedHeaders = [
  "authorization",
  "content-type",
  "idempotency-key",
  "last-event-id",
  "prefer",
  "x-request-id",
  "traceparent",
];
const allowedMethods = "GET, POST, PUT, PATCH, DELETE";
const PREFLIGHT_SECONDS = "600";

/**
 * Refuses requests that a page of another site makes a browser send. With DNS rebinding, `Host` is foreign; with a
 * direct request, `Origin` is. Throws `ServerError` (403).
 */
export function assertWelcome(request: Request, rules: OriginRules): void {
  const host = hostOf(request);
  const hosts = rules.hosts();
  const isKnown = hosts === undefined || hosts.includes(host);
  if (!isKnown || (rules.loopbackOnly && !isLoopbackName(hostname(host)))) {
    throw new ServerError("forbidden", "this server does not serve that host");
  }
  const origin = request.headers.get("origin");
  if (origin === null || rules.cors.includes(origin) || isOwn(origin, host)) return;
  throw new ServerError("forbidden", "pages of this origin may not call this server");
}

/**
 * Refuses clients on other machines, whose `Host` can be forged, and clients with an unknown address. Throws
 * `ServerError` (403).
 */
export function assertNear(peer: string | undefined): void {
  if (peer === undefined) {
    throw new ServerError(
      "forbidden",
      "openAuth() accepts only clients on this machine, and the client's address is unknown: mount the server with nodeListener(), or pass the bindings of Node to fetch(request, env)",
    );
  }
  if (isLoopbackName(plainAddress(peer))) return;
  throw new ServerError("forbidden", "this server answers only clients on its own machine");
}

const forwardedHeaders = ["forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via"];

/** Refuses all clients except those on this machine without a proxy. Throws `ServerError` (403). */
export function assertLocal(request: Request, peer: string | undefined): void {
  const isNear = peer !== undefined && isLoopbackName(plainAddress(peer));
  const isForwarded = forwardedHeaders.some((name) => request.headers.has(name));
  if (isNear && !isForwarded && isLoopbackName(hostname(hostOf(request)))) return;
  throw new ServerError("forbidden", "this page is available only on the server's own machine");
}

/** `::ffff:10.0.0.1` as `10.0.0.1`. */
export function plainAddress(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.)/i, "");
}

/** Answers a CORS preflight; returns `undefined` for other requests. */
export function preflight(request: Request, { cors, headers: more }: OriginRules): Response | undefined {
  const origin = request.headers.get("origin");
  const isAsked = request.method === "OPTIONS" && request.headers.has("access-control-request-method");
  if (!isAsked || origin === null || !cors.includes(origin)) return undefined;
  const headers = {
    ...corsHeaders(origin, more),
    "access-control-allow-methods": allowedMethods,
    "access-control-allow-headers": [...allowedHeaders, ...more].join(", "),
    "access-control-max-age": PREFLIGHT_SECONDS,
  };
  return new Response(null, { status: 204, headers });
}

/** Headers that let a page of an allowed origin read the answer; empty for other requests. */
export function sharingHeaders(request: Request, { cors, headers }: OriginRules): Readonly<Record<string, string>> {
  if (cors.length === 0) return {};
  const origin = request.headers.get("origin");
  return origin !== null && cors.includes(origin) ? corsHeaders(origin, headers) : { vary: "Origin" };
}

/** The host and port that the client requested. */
export function hostOf(request: Request): string {
  return (request.headers.get("host") ?? new URL(request.url).host).toLowerCase();
}

function hostname(host: string): string {
  return host.replace(/:\d+$/, "").replace(/^\[(.*)\]$/, "$1");
}

/** Compares only the hosts, because a proxy may have ended TLS. */
function isOwn(origin: string, host: string): boolean {
  return URL.canParse(origin) && new URL(origin).host === host;
}

function corsHeaders(origin: string, more: readonly string[]): Record<string, string> {
  const exposed = [...exposedHeaders, ...more].join(", ");
  return { "access-control-allow-origin": origin, "access-control-expose-headers": exposed, vary: "Origin" };
}
