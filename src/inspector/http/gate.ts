import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import type { Scope } from "../feed/wire.ts";

/** The two tokens of an inspector. Treat them as passwords. */
export interface Tokens {
  /** Allows reading everything. */
  readonly watch: string;
  /** Allows reading everything, deciding, pausing and talking. Default: no token allows this. */
  readonly act?: string | undefined;
}

export function newToken(): string {
  return randomBytes(24).toString("base64url");
}

/** Whether a text is a valid token. A page sends it as a WebSocket protocol, so few characters are allowed. */
export function isPageToken(value: unknown): value is string {
  return typeof value === "string" && /^[\w-]{16,200}$/.test(value);
}

export interface GateOptions {
  readonly tokens: Tokens;
  /** Allowed values of `Host`, in lower case. */
  readonly hosts: () => readonly string[];
}

/** 401: the token is missing or wrong. 403: the host, the origin or the scope is not allowed. */
export type Refusal = 401 | 403;

/**
 * Decides which requests are answered. A page of another site can make a browser send requests to this machine: its host
 * name may resolve to this address (then `Host` is foreign), or it may request the address itself (then `Origin` is).
 * Programs other than browsers send no `Origin`. Every request needs a token, which no browser adds by itself: there are
 * no cookies.
 */
export class Gate {
  readonly #options: GateOptions;

  constructor(options: GateOptions) {
    this.#options = options;
  }

  /** Whether `Host` is a name of this server. This check is enough for the page itself, which contains no data. */
  isOurName({ host }: IncomingHttpHeaders): boolean {
    return host !== undefined && this.#options.hosts().includes(host.toLowerCase());
  }

  /** The scope of the request, or the status that refuses it. */
  scopeOf(headers: IncomingHttpHeaders, token: string | undefined): Scope | Refusal {
    const { host = "", origin } = headers;
    if (!this.isOurName(headers)) return 403;
    if (origin !== undefined && !isOrigin(origin, host)) return 403;
    const { watch, act } = this.#options.tokens;
    if (token === undefined) return 401;
    if (act !== undefined && isSame(token, act)) return "act";
    return isSame(token, watch) ? "watch" : 401;
  }
}

function isOrigin(origin: string, host: string): boolean {
  return origin === `http://${host.toLowerCase()}` || origin === `https://${host.toLowerCase()}`;
}

/** Compares in constant time. */
export function isSame(one: string, other: string): boolean {
  return timingSafeEqual(digestOf(one), digestOf(other));
}

function digestOf(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}

/** The token of `Authorization: Bearer …`. */
export function bearerOf({ authorization }: IncomingHttpHeaders): string | undefined {
  return /^Bearer ([\w-]{1,200})$/i.exec(authorization ?? "")?.[1];
}

export const FEED_PROTOCOL = "troupe.feed.v1";

/** The token among the protocols of a WebSocket, where a page cannot set headers: `bearer.<token>`. */
export function protocolTokenOf(headers: IncomingHttpHeaders): string | undefined {
  const names = (headers["sec-websocket-protocol"] ?? "").split(",").map((name) => name.trim());
  if (!names.includes(FEED_PROTOCOL)) return undefined;
  return names.map((name) => /^bearer\.([\w-]{1,200})$/.exec(name)?.[1]).find((token) => token !== undefined);
}
