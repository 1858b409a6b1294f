import { lookup as systemLookup } from "node:dns/promises";
import { request as httpRequest, type RequestOptions } from "node:http";
import { request as httpsRequest } from "node:https";
import { isIP, type LookupFunction } from "node:net";
import { callbackify } from "node:util";
import type { Clock } from "../../base/index.ts";
import { InvalidInputError } from "../../errors/index.ts";
import { isLoopbackName, isPublicAddress } from "../../net/index.ts";

/** Resolves a name to all its addresses; rejects if it has none. */
export type LookupAddresses = (
  hostname: string,
) => Promise<readonly { readonly address: string; readonly family: number }[]>;

export interface ReceiversOptions {
  /** Origins that may be without TLS and in private networks, such as `http://hooks.internal:8080`. */
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
/** Timeout of one request, including the name's lookup, in milliseconds. */
export const POST_MS = 10_000;
/** Maximum size of an answer's head; its body is not read. */
const HEAD_BYTES = 8_192;

/**
 * Sends requests to URLs that callers chose.
 *
 * Invariants
 * 1. Unless its origin is listed, a request uses TLS, and only connects to public addresses.
 * 2. The checked addresses are the ones used for the connection: a name is resolved once for each request.
 * 3. Redirects are not followed, connections are not reused, and the body of an answer is discarded unread.
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

  /** Checks a URL without resolving its name. Throws `InvalidInputError`, whose message does not contain the URL. */
  async assertUrl(text: string): Promise<URL> {
    if (text.length > LONGEST_URL) throw new InvalidInputError(`url is longer than ${LONGEST_URL} characters`);
    // URL parsing drops line breaks and tabs, so the parsed URL would differ from the text.
    if (/[\0-\x20\x7f]/.test(text) || !URL.canParse(text)) throw new InvalidInputError("url is not a valid URL");
    const url = new URL(text);
    if (url.username !== "" || url.password !== "") {
      throw new InvalidInputError("url must not contain credentials; give them as authentication");
    }
    if (this.#origins.has(url.origin)) return url;
    if (url.protocol !== "https:") throw new InvalidInputError("url must begin with https:");
    const name = nameIn(url);
    const isPrivateName = isLoopbackName(name) || /(?:^|\.)localhost\.?$/.test(name);
    if (isPrivateName || (isIP(name) !== 0 && !isPublicAddress(name))) {
      throw new InvalidInputError("url must be a public address");
    }
    return url;
  }

  /** Sends one request. Resolves with the status of the answer; rejects without an answer within 10 seconds. */
  async post({ url: text, headers, body, signal }: Post): Promise<number> {
    const url = await this.assertUrl(text);
    const over = new AbortController();
    const cancel = this.#clock.setDelay(POST_MS, () => over.abort(new Error(`no answer within ${POST_MS / 1_000} s`)));
    const ended = AbortSignal.any([signal, over.signal]);
    const options: RequestOptions = {
      method: "POST",
      headers: { ...headers, "content-length": Buffer.byteLength(body), connection: "close" },
      lookup: this.#lookupFor(url),
      // No pool: a pooled connection could lead to an address that was checked for another request.
      agent: false,
      maxHeaderSize: HEAD_BYTES,
      signal: ended,
    };
    try {
      return await statusOf(url, options, body);
    } catch (error) {
      if (ended.aborted) throw ended.reason;
      // If all addresses fail, the error itself has no message.
      if (error instanceof AggregateError) throw new Error(error.errors.map(String).join("; "), { cause: error });
      throw error;
    } finally {
      cancel();
    }
  }

  /**
   * Checks the addresses of a name for the connection. Node calls it only for names; literal addresses were checked
   * before.
   */
  #lookupFor(url: URL): LookupFunction {
    const judged = async (hostname: string): Promise<Awaited<ReturnType<LookupAddresses>>> => {
      const found = await this.#lookup(hostname);
      if (found.length === 0) throw new Error("its host name has no address");
      if (this.#origins.has(url.origin)) return found;
      for (const { address } of found) {
        if (!isPublicAddress(address)) throw new Error("its host name has an address that is not public");
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
  // A protocol upgrade ends the connection without an answer.
  request.on("close", () => reject(new Error("the connection was closed without an answer")));
  request.end(body);
  return await promise;
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
    `webhooks.origins: ${JSON.stringify(text)} is not an origin; expected for example http://hooks.internal:8080`,
  );
}
