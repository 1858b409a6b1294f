/*
 * POSTs of JSON over kept-alive connections of `undici`, and their answers as text.
 * Owns the connections to the servers of models. Knows nothing of models, repeats nothing, and sets no time limits: whoever
 * calls cuts the exchange.
 * 1. Nothing is sent twice: a connection that breaks ends its exchange with an error, also one that was kept and had gone stale.
 * 2. A connection has one exchange at a time. A cut exchange leaves none behind, not even one that was still being made.
 * 3. A free connection keeps no process alive. It is closed after 30 s, or as soon as its server says.
 */
import type { Socket } from "node:net";
import { StringDecoder } from "node:string_decoder";
import type { Transform } from "node:stream";
import type * as zlibModule from "node:zlib";
import type { buildConnector, Client, Dispatcher } from "undici";
// Only what is used is loaded: the whole package takes nearly as long as the client of the provider.
// @ts-expect-error Types are given for the whole package only.
import connectPart from "undici/lib/core/connect.js";
// @ts-expect-error Types are given for the whole package only.
import clientPart from "undici/lib/dispatcher/client.js";
import type { Cutter } from "./call-guard.ts";
import { type HttpAnswer, WebAnswer } from "./read-answer.ts";

type HeaderRecord = Readonly<Record<string, string | readonly string[] | undefined>>;

/** Headers of the connection, which is made here, and the length, which is counted here. */
const ownHeaders: ReadonlySet<string> = new Set([
  "content-length",
  "expect",
  "keep-alive",
  "transfer-encoding",
  "upgrade",
]);
const redirections: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
/** Most connections to one server that are kept while they are free. */
const mostFree = 256;
const timeouts = { headersTimeout: 0, bodyTimeout: 0, keepAliveTimeout: 30_000, allowH2: false } as const;

/** Sends POSTs to one address. */
export class Poster {
  readonly #url: URL;
  readonly #path: string;
  readonly #headers: Readonly<Record<string, string>>;
  /** Where it is given, it makes the connections. */
  readonly #proxies: Dispatcher | undefined;
  readonly #free: Line[];

  /** The headers go with each request, but for those that belong to the connection. */
  static async open(url: string, headers: Iterable<readonly [string, string]>): Promise<Poster> {
    return new Poster(url, headers, usesProxies() ? await openProxies() : undefined);
  }

  private constructor(url: string, headers: Iterable<readonly [string, string]>, proxies: Dispatcher | undefined) {
    this.#url = new URL(url);
    this.#path = this.#url.pathname + this.#url.search;
    const sent = [...headers].filter(([name]) => !ownHeaders.has(name));
    this.#headers = { "accept-encoding": "identity", ...Object.fromEntries(sent) };
    this.#proxies = proxies;
    this.#free = freeLines(this.#url.origin);
  }

  /**
   * Sends one body. Resolves when the head of the answer has come, whatever its status. Rejects with the reason of a cut,
   * else with a `TypeError` whose `cause` is the connection's error. Redirects are followed as `fetch` does.
   */
  post(body: string, cutter: Cutter): Promise<HttpAnswer> {
    return new Promise((resolve, reject) => {
      const begin = (exchange: Exchange): void => {
        const location = redirections.has(exchange.status) ? exchange.header("location") : "";
        resolve(location === "" ? exchange : this.#follow(exchange, location, body, cutter));
      };
      const line =
        this.#proxies === undefined ? (this.#free.pop() ?? new Line(this.#url.origin, this.#free)) : undefined;
      const exchange = new Exchange({ begin, reject, line });
      cutter.onCut((reason) => exchange.cut(reason));
      // A dispatcher for proxies changes what it is given.
      const headers = this.#proxies === undefined ? this.#headers : { ...this.#headers };
      const request = { origin: this.#url.origin, path: this.#path, method: "POST", headers, body } as const;
      (this.#proxies ?? line?.client)?.dispatch(request, exchange);
    });
  }

  async #follow(exchange: Exchange, location: string, body: string, cutter: Cutter): Promise<HttpAnswer> {
    const target = new URL(location, this.#url);
    await exchange.eachText(() => undefined);
    const headers = new Headers(this.#headers);
    const isSame = exchange.status === 307 || exchange.status === 308;
    if (!isSame) headers.delete("content-type");
    if (target.origin !== this.#url.origin) for (const name of credentials) headers.delete(name);
    const request = isSame ? { method: "POST", body } : { method: "GET" };
    return new WebAnswer(await fetch(target, { ...request, headers, signal: cutter.signal }));
  }
}

/** Headers that do not go to another server than the one they were meant for. */
const credentials = ["authorization", "proxy-authorization", "cookie", "host", "api-key", "x-api-key"] as const;

interface ExchangeParts {
  /** Called when the head of the answer has come. */
  readonly begin: (exchange: Exchange) => void;
  readonly reject: (error: Error) => void;
  /** Absent where proxies are asked: they have their own connections. */
  readonly line: Line | undefined;
}

/** One request and its answer, told by `undici` as they go on. */
class Exchange implements HttpAnswer, Dispatcher.DispatchHandler {
  status = 0;
  readonly #parts: ExchangeParts;
  #controller: Dispatcher.DispatchController | undefined;
  #headers: HeaderRecord = {};
  /** What came before anybody read. */
  #early: Buffer[] = [];
  #reader: Reader | undefined;
  #isOver = false;
  #error: Error | undefined;

  constructor(parts: ExchangeParts) {
    this.#parts = parts;
  }

  get headers(): Headers {
    const headers = new Headers();
    for (const [name, value] of Object.entries(this.#headers)) {
      for (const each of typeof value === "string" ? [value] : (value ?? [])) headers.append(name, each);
    }
    return headers;
  }

  header(name: string): string {
    const value = this.#headers[name] ?? "";
    return typeof value === "string" ? value : value.join(", ");
  }

  /** Ends the exchange and its connection; what waits for it is rejected with the reason. No effect when it is over. */
  cut(reason: Error): void {
    if (this.#isOver) return;
    this.#fail(reason);
    this.#controller?.abort(reason);
  }

  arrivedText(): string | undefined {
    if (!this.#isOver || this.#error !== undefined || this.header("content-encoding") !== "") return undefined;
    const [first, ...others] = this.#early.splice(0);
    if (first === undefined) return "";
    return (others.length === 0 ? first : Buffer.concat([first, ...others])).toString();
  }

  async eachText(onText: (text: string) => void): Promise<void> {
    const decoder = new StringDecoder("utf8");
    const onBytes = (bytes: Buffer): void => {
      const text = decoder.write(bytes);
      if (text !== "") onText(text);
    };
    const codings = codingsOf(this.header("content-encoding"));
    if (codings.length === 0) await this.#eachBytes(onBytes);
    else await this.#eachUnpacked(codings, onBytes);
    const rest = decoder.end();
    if (rest !== "") onText(rest);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#error !== undefined) controller.abort(this.#error);
  }

  onResponseStart(_controller: unknown, status: number, headers: HeaderRecord): void {
    // Interim answers precede the one that counts.
    if (status < 200 || this.#isOver) return;
    this.status = status;
    this.#headers = headers;
    this.#parts.begin(this);
  }

  onResponseData(_controller: unknown, bytes: Buffer): void {
    if (this.#isOver) return;
    if (this.#reader === undefined) this.#early.push(bytes);
    else this.#hand(bytes, this.#reader);
  }

  onResponseEnd(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#parts.line?.release();
    this.#reader?.resolve();
  }

  onResponseError(_controller: unknown, told: Error): void {
    if (this.#isOver) return;
    const hasBegun = this.status !== 0;
    const cause = isClosed(told) ? closedError(hasBegun ? "aborted" : "socket hang up") : told;
    const words = hasBegun
      ? "terminated: the connection was cut before the answer had ended"
      : `fetch failed: ${cause.message}`;
    this.#fail(new TypeError(words, { cause }));
  }

  #eachBytes(onBytes: (bytes: Buffer) => void): Promise<void> {
    return new Promise((resolve, reject) => {
      const reader = { onBytes, resolve, reject };
      for (const bytes of this.#early.splice(0)) this.#hand(bytes, reader);
      if (this.#error !== undefined) reject(this.#error);
      else if (this.#isOver) resolve();
      else this.#reader = reader;
    });
  }

  /** Unpacks a body that the server has packed although it was asked not to. */
  async #eachUnpacked(codings: readonly Coding[], onBytes: (bytes: Buffer) => void): Promise<void> {
    const [zlib, { PassThrough, pipeline, Writable }] = await Promise.all([import("node:zlib"), import("node:stream")]);
    const packed = new PassThrough();
    const reader = new Writable({
      write: (bytes: Buffer, _encoding, done) => {
        try {
          onBytes(bytes);
          done();
        } catch (thrown) {
          done(thrown as Error);
        }
      },
    });
    const stages = codings.map((coding) => unpackers[coding](zlib));
    const unpacked = new Promise<void>((resolve, reject) => {
      pipeline([packed, ...stages, reader], (error) => (error ? reject(error) : resolve()));
    });
    this.#eachBytes((bytes) => void packed.write(bytes)).then(
      () => packed.end(),
      (error: Error) => packed.destroy(error),
    );
    try {
      await unpacked;
    } catch (thrown) {
      const error = thrown instanceof Error ? thrown : new Error(String(thrown));
      this.cut(error);
      throw error;
    }
  }

  #hand(bytes: Buffer, reader: Reader): void {
    if (this.#error !== undefined) return;
    try {
      reader.onBytes(bytes);
    } catch (thrown) {
      const error = thrown instanceof Error ? thrown : new Error(String(thrown));
      reader.reject(error);
      this.#error = error;
      this.cut(error);
    }
  }

  #fail(error: Error): void {
    this.#isOver = true;
    this.#error = error;
    this.#early = [];
    this.#parts.line?.end(error);
    this.#parts.reject(error);
    this.#reader?.reject(error);
  }
}

interface Reader {
  readonly onBytes: (bytes: Buffer) => void;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

/** Whether the other side closed the connection in the middle. */
function isClosed(error: Error & { readonly code?: unknown }): boolean {
  return error.code === "UND_ERR_SOCKET" || error.code === "UND_ERR_RES_CONTENT_LENGTH_MISMATCH";
}

/** The same in the words of Node, which whoever reads the code of an error knows. */
function closedError(words: string): Error {
  return Object.assign(new Error(words), { code: "ECONNRESET" });
}

/** As browsers do, a body that ends early is unpacked as far as it goes. */
const unpackers = {
  gzip: (zlib: typeof zlibModule): Transform => zlib.createGunzip({ finishFlush: zlib.constants.Z_SYNC_FLUSH }),
  deflate: (zlib: typeof zlibModule): Transform => zlib.createInflate({ finishFlush: zlib.constants.Z_SYNC_FLUSH }),
  br: (zlib: typeof zlibModule): Transform =>
    zlib.createBrotliDecompress({ finishFlush: zlib.constants.BROTLI_OPERATION_FLUSH }),
} as const;
type Coding = keyof typeof unpackers;

/** The codings to undo, the last one first. A body in a coding that is not known is read as it is. */
function codingsOf(header: string): readonly Coding[] {
  if (header === "") return [];
  const names = header.split(",").map((name) => name.trim().toLowerCase().replace("x-gzip", "gzip"));
  const codings = names.filter((name): name is Coding => Object.hasOwn(unpackers, name)).toReversed();
  return names.every((name) => name === "identity" || Object.hasOwn(unpackers, name)) ? codings : [];
}

/** A connection to a server; it is made when something is sent. */
class Line {
  readonly client: Client;
  readonly #free: Line[];
  #socket: Socket | undefined;

  constructor(origin: string, free: Line[]) {
    this.#free = free;
    this.client = new UndiciClient(origin, {
      ...timeouts,
      connect: (options, callback) => {
        // It returns the socket, which its types leave out.
        this.#socket = connectTo(options, callback) as unknown as Socket | undefined;
      },
    });
    this.client.on("disconnect", () => {
      const place = free.indexOf(this);
      if (place !== -1) free.splice(place, 1);
    });
  }

  /** Its exchange has ended well: it is free for another one. */
  release(): void {
    if (this.#free.length < mostFree) this.#free.push(this);
    else void this.client.close();
  }

  end(reason: Error): void {
    void this.client.destroy(reason);
    this.#socket?.destroy();
  }
}

const UndiciClient = clientPart as typeof Client;
const connectTo = (connectPart as typeof buildConnector)({ timeout: 0, allowH2: false });
const linesByOrigin = new Map<string, Line[]>();

function freeLines(origin: string): Line[] {
  let free = linesByOrigin.get(origin);
  if (free === undefined) {
    free = [];
    linesByOrigin.set(origin, free);
  }
  return free;
}

/** Node's own rule for `fetch`: the proxies of the environment count only if it is told so. */
function usesProxies(): boolean {
  const flags = [...process.execArgv, ...(process.env["NODE_OPTIONS"] ?? "").split(" ")];
  return process.env["NODE_USE_ENV_PROXY"] === "1" || flags.includes("--use-env-proxy");
}

let proxies: Dispatcher | undefined;

async function openProxies(): Promise<Dispatcher> {
  const { proxyAgent } = await import("./http-proxies.ts");
  proxies ??= proxyAgent(timeouts);
  return proxies;
}
