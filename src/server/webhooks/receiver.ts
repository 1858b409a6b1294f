import { lookup as systemLookup } from "node:dns/promises";
import { request as httpRequest, type RequestOptions } from "node:http";
import { request as httpsRequest } from "node:https";
import { isIP, type LookupFunction } from "node:net";
import ipaddr from "ipaddr.js";
import { callbackify } from "node:util";
import type { Clock } from "../../base/index.ts";
import { InvalidInputError } from "../../errors/index.ts";
import { isLoopbackName } from "../core/origins.ts";

/** Gives all addresses of a name; rejects when it has none. */
export type LookupAddresses = (
  hostname: string,
) => Promise<readonly { readonly address: string; readonly family: number }[]>;

export interface ReceiversOptions {
  /** Origins that may be without TLS and in private networks, as `http://hooks.internal:8080`. */
  readonly origins?: readonly string[] | undefined;
  readonly lookup?: LookupAddresses | undefined;
  readonly clock: Clock;
}

export interface Post {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly signal: AbortSignal;
}

const LONGEST_URL = 2_048;
/** Time of one request, the name's lookup included, in milliseconds. */
export const POST_MS = 10_000;
/** The most that is read of an answer's head; of its body nothing is used. */
const HEAD_BYTES = 8_192;

/**
 * Sends requests to addresses that callers chose.
 *
 * Invariants
 * 1. Unless its origin is listed, a request goes over TLS, and only to addresses that the public internet routes.
 * 2. The addresses that were judged are those that are connected to: a name is resolved once for each request.
 * 3. No redirect is followed, no connection is used again, and an answer's body is thrown away unread.
 */
export class Receivers {
  readonly #origins: ReadonlySet<string>;
  readonly #lookup: LookupAddresses;
  readonly #clock: Clock;

  /** Throws `InvalidInputError` for an invalid origin. */
  constructor({ origins = [], lookup, clock }: ReceiversOptions) {
    this.#origins = new Set(origins.map(originOf));
    this.#lookup = lookup ?? ((hostname) => systemLookup(hostname, { all: true, verbatim: true }));
    this.#clock = clock;
  }

  /** Judges what can be judged without asking for addresses. Throws `InvalidInputError`, without the address. */
  async assertUrl(text: string): Promise<URL> {
    if (text.length > LONGEST_URL) throw new InvalidInputError(`url is longer than ${LONGEST_URL} characters`);
    // A URL drops line ends and tabs, and a reader of the text would see another address.
    if (/[\0-\x20\x7f]/.test(text) || !URL.canParse(text)) throw new InvalidInputError("url is not a valid URL");
    const url = new URL(text);
    if (url.username !== "" || url.password !== "") {
      throw new InvalidInputError("url must not contain credentials; give them as authentication");
    }
    if (this.#origins.has(url.origin)) return url;
    if (url.protocol !== "https:") throw new InvalidInputError("url must begin with https:");
    const name = nameIn(url);
    const isPrivateName = isLoopbackName(name) || /(?:^|\.)localhost\.?$/.test(name);
    if (isPrivateName || (isIP(name) !== 0 && !isPublic(name))) {
      throw new InvalidInputError("url must be a public address");
    }
    return url;
  }

  /** Sends one request. Resolves with the status of the answer; rejects when none comes within 10 seconds. */
  async post({ url: text, headers, body, signal }: Post): Promise<number> {
    const url = await this.assertUrl(text);
    const over = new AbortController();
    const cancel = this.#clock.setDelay(POST_MS, () => over.abort(new Error(`no answer within ${POST_MS / 1_000} s`)));
    const ended = AbortSignal.any([signal, over.signal]);
    const options: RequestOptions = {
      method: "POST",
      headers: { ...headers, "content-length": Buffer.byteLength(body), connection: "close" },
      lookup: this.#lookupFor(url),
      // No pool: a pooled connection could be to an address that was judged for another request.
      agent: false,
      maxHeaderSize: HEAD_BYTES,
      signal: ended,
    };
    try {
      return await statusOf(url, options, body);
    } catch (error) {
      if (ended.aborted) throw ended.reason;
      // Of several addresses that were tried, with no words of its own.
      if (error instanceof AggregateError) throw new Error(error.errors.map(String).join("; "), { cause: error });
      throw error;
    } finally {
      cancel();
    }
  }

  /** Gives the judged addresses of a name to the connection. Node asks it for names only: literal addresses were judged. */
  #lookupFor(url: URL): LookupFunction {
    const judged = async (hostname: string): Promise<Awaited<ReturnType<LookupAddresses>>> => {
      const found = await this.#lookup(hostname);
      if (found.length === 0) throw new Error("its name has no address");
      if (this.#origins.has(url.origin)) return found;
      for (const { address } of found) {
        if (!isPublic(address)) throw new Error("its name has an address that is not public");
      }
      return found;
    };
    const ask = callbackify(judged);
    return (hostname, { all }, callback) => {
      ask(hostname, (error, found) => {
        const [first] = error ? [] : found;
        if (all === true) callback(error, error ? [] : [...found]);
        else callback(error, first?.address ?? "", first?.family);
      });
    };
  }
}

async function statusOf(url: URL, options: RequestOptions, body: string): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const send = url.protocol === "https:" ? httpsRequest : httpRequest;
  const request = send(url, options, (response) => {
    resolve(response.statusCode ?? 0);
    // The rest of the answer is not needed.
    response.on("error", () => undefined);
    response.destroy();
  });
  request.on("error", reject);
  // An answer that changes the protocol ends the connection without an answer.
  request.on("close", () => reject(new Error("the connection was closed without an answer")));
  request.end(body);
  return await promise;
}

/** Whether the public internet routes to a literal address. An IPv4 address in the form of IPv6 is judged as what it is. */
function isPublic(address: string): boolean {
  if (!ipaddr.isValid(address)) return false;
  const parsed = ipaddr.process(address);
  if (parsed.range() !== "unicast") return false;
  // All that is routed lies in 2000::/3; the ranges that are known by name are the exceptions in it.
  return parsed.kind() === "ipv4" || (parsed.toByteArray()[0] ?? 0) >> 5 === 1;
}

function nameIn({ hostname }: URL): string {
  return hostname.replace(/^\[(.*)\]$/, "$1");
}

function originOf(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (
    url !== undefined &&
    ["http:", "https:"].includes(url.protocol) &&
    [url.origin, `${url.origin}/`].includes(text)
  ) {
    return url.origin;
  }
  throw new InvalidInputError(
    `webhooks.origins: ${JSON.stringify(text)} is not an origin; give one as http://hooks.internal:8080`,
  );
}
