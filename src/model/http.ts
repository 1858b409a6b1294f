/*
 * POSTs of JSON over kept-alive connections, and their answers as text. Knows nothing of models, repeats nothing, and sets no
 * time limits: whoever calls cuts the exchange. The connections are those of http-line.ts.
 * 1. Nothing is sent twice: a connection that breaks ends its exchange with an error, also one that was kept and had gone stale.
 * 2. A cut exchange leaves no connection behind, not even one that was still being made. By way of a proxy, one that is being made
 *    is given up after a minute (http-proxies.ts).
 */
import type { Cutter } from "./call-guard.ts";
import { Exchange } from "./http-exchange.ts";
import { LinePool, type RequestParts } from "./http-line.ts";
import type { ProxySend } from "./http-proxies.ts";
import { type HttpAnswer, WebAnswer } from "./read-answer.ts";

/** Headers of the connection, which is made here, and the length, which is counted here. */
const ownHeaders: ReadonlySet<string> = new Set([
  "content-length",
  "expect",
  "keep-alive",
  "transfer-encoding",
  "upgrade",
]);
const redirections: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
/** A longer body is written by itself: to join it to its head would copy it. */
const longestJoined = 65_536;

/** Sends POSTs to one address. */
export class Poster {
  readonly #url: URL;
  readonly #headers: Readonly<Record<string, string>>;
  /** Of each request, up to the number of its bytes. */
  readonly #head: string;
  readonly #pool: LinePool;
  /** Where it is given, it sends. */
  readonly #proxies: ProxySend | undefined;

  /**
   * The headers go with each request, but for those that belong to the connection. Throws `TypeError` for a header that would not
   * be one line of text.
   */
  static async open(url: string, headers: Iterable<readonly [string, string]>): Promise<Poster> {
    const target = new URL(url);
    const sent: Readonly<Record<string, string>> = { "accept-encoding": "identity", ...sentHeaders(headers) };
    const proxies = usesProxies() ? (await import("./http-proxies.ts")).proxySend() : undefined;
    return new Poster(target, sent, await LinePool.of(target, sent["host"]), proxies);
  }

  private constructor(
    url: URL,
    headers: Readonly<Record<string, string>>,
    pool: LinePool,
    proxies: ProxySend | undefined,
  ) {
    this.#url = url;
    this.#headers = headers;
    const lines = Object.entries({ host: url.host, connection: "keep-alive", ...headers });
    const fields = lines.map(([name, value]) => `${name}: ${value}\r\n`).join("");
    this.#head = `POST ${url.pathname}${url.search} HTTP/1.1\r\n${fields}content-length: `;
    this.#pool = pool;
    this.#proxies = proxies;
  }

  /**
   * Sends one body. Resolves when the head of the answer has come, whatever its status. Rejects with the reason of a cut,
   * else with a `TypeError` whose `cause` is the connection's error. Redirects are followed as `fetch` does, but to another server go
   * no headers of the caller's.
   */
  post(body: string, cutter: Cutter): Promise<HttpAnswer> {
    return new Promise((resolve, reject) => {
      const begin = (exchange: Exchange): void => {
        const location = redirections.has(exchange.status) ? exchange.header("location") : "";
        const followed = (): Promise<HttpAnswer> => this.#follow(exchange, location, body, cutter);
        // Begun when this promise is settled: to end the exchange before would reject it.
        resolve(location === "" ? exchange : Promise.resolve().then(followed));
      };
      const exchange = new Exchange({ begin, reject });
      cutter.watch(exchange);
      if (exchange.isOver) return;
      if (this.#proxies === undefined) this.#pool.send(exchange, this.#requestWith(body));
      else this.#proxies(this.#url, this.#headers, body, exchange);
    });
  }

  #requestWith(body: string): RequestParts {
    const length = Buffer.byteLength(body);
    const head = `${this.#head}${length}\r\n\r\n`;
    // With as many bytes as characters it is ASCII, which needs no encoding.
    if (length === body.length) return length > longestJoined ? [head, body] : [head + body];
    const bytes = Buffer.allocUnsafe(head.length + length);
    bytes.write(head, 0, "latin1");
    bytes.write(body, head.length, "utf8");
    return [bytes];
  }

  async #follow(exchange: Exchange, location: string, body: string, cutter: Cutter): Promise<HttpAnswer> {
    // Nobody reads the body of a redirect, which may never end.
    exchange.cut(new Error("the server has sent the request elsewhere"));
    const headers = new Headers(this.#headers);
    let sent: { readonly method: string; readonly body?: string } = { method: "POST", body };
    let answer: Pick<Response, "status"> = exchange;
    let from = this.#url;
    let to = location;
    for (let hop = 0; hop < MOST_REDIRECTS; hop += 1) {
      const target = targetOf(to, from);
      if (answer.status !== 307 && answer.status !== 308) {
        sent = { method: "GET" };
        headers.delete("content-type");
      }
      if (target.origin !== from.origin) forgetPrivate(headers);
      const response = await fetch(target, { ...sent, headers, redirect: "manual", signal: cutter.signal });
      const next = redirections.has(response.status) ? (response.headers.get("location") ?? "") : "";
      if (next === "") return new WebAnswer(response);
      void response.body?.cancel().catch(() => undefined);
      answer = response;
      from = target;
      to = next;
    }
    throw new TypeError(`fetch failed: the request was sent elsewhere more than ${MOST_REDIRECTS} times`);
  }
}

/** As many as `fetch` follows. */
const MOST_REDIRECTS = 20;
/** All that another server gets: any other header may be a credential, whatever its name. */
const sharedHeaders: ReadonlySet<string> = new Set(["accept", "accept-encoding", "content-type", "user-agent"]);

function forgetPrivate(headers: Headers): void {
  for (const name of new Headers(headers).keys()) if (!sharedHeaders.has(name)) headers.delete(name);
}

function targetOf(location: string, from: URL): URL {
  const target = URL.canParse(location, from.href) ? new URL(location, from) : undefined;
  if (target?.protocol === "http:" || target?.protocol === "https:") return target;
  throw new TypeError("fetch failed: the server has sent the request to what is no http or https address");
}

const nameForm = /^[\w!#$%&'*+.^`|~-]+$/;
const valueForm = /^[\t\x20-\x7e\x80-\xff]*$/;

/** The headers by their names in small letters, without those of the connection. A header cannot end, or add, another one. */
function sentHeaders(headers: Iterable<readonly [string, string]>): Record<string, string> {
  const sent = new Map<string, string>();
  for (const [given, value] of headers) {
    const name = given.toLowerCase();
    // The value is not shown: it may be a key.
    if (!nameForm.test(name)) throw new TypeError(`${JSON.stringify(given)} is no name of a header.`);
    if (!valueForm.test(value)) throw new TypeError(`The header ${given} has a character that no header may have.`);
    if (ownHeaders.has(name)) continue;
    const before = sent.get(name);
    sent.set(name, before === undefined ? value : `${before}, ${value}`);
  }
  return Object.fromEntries(sent);
}

/** Node's own rule for `fetch`: the proxies of the environment count only if it is told so. */
function usesProxies(): boolean {
  const flags = [...process.execArgv, ...(process.env["NODE_OPTIONS"] ?? "").split(" ")];
  return process.env["NODE_USE_ENV_PROXY"] === "1" || flags.includes("--use-env-proxy");
}
