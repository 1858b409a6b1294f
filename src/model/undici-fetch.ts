/*
 * The `fetch` of the clients that this package creates: POSTs of JSON over kept-alive connections of `undici`. It sets no time limits:
 * the caller's signal ends a request.
 * 1. No request is sent twice. If the connection breaks, the request fails with an error.
 * 2. A request that is ended early leaves no open connection, not even a pending one; a pending tunnel through a proxy is given up after
 *    a minute.
 * 3. A redirect to another server drops all of the caller's headers except harmless ones, because any header may be a credential.
 */
import { connect as connectPlain, isIP, type Socket } from "node:net";
import type { Transform } from "node:stream";
import type { ReadableStream as NodeStream } from "node:stream/web";
import { connect as connectSafely } from "node:tls";
import { setImmediate as nextEventLoopTurn } from "node:timers/promises";
// The main file by its path: Bun replaces "undici" with a module of its own, whose agents cannot send.
import { Agent, type buildConnector, type Dispatcher, EnvHttpProxyAgent, Pool } from "undici/index.js";

/** Receives the delivery status of a request. */
export interface Delivery {
  /** Whether bytes of the request may have reached a server; `undefined` if unknown. */
  wasSent: boolean | undefined;
}

interface SentRequest {
  readonly url: URL;
  readonly method: "POST" | "GET";
  /** Keys are lower-case header names. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | null;
}

/** The number of redirects that `fetch` follows. */
const MOST_REDIRECTS = 20;
const redirections: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/**
 * Sends a request with a text body and follows redirects as `fetch` does. Rejects with the signal's reason, else with a `TypeError` whose
 * `cause` is the connection's error.
 */
export async function undiciFetch(
  input: string | URL | Request,
  init: RequestInit = {},
  delivery?: Delivery,
): Promise<Response> {
  let request = requestOf(input, init);
  for (let hop = 0; hop <= MOST_REDIRECTS; hop += 1) {
    const response = await sent(request, init.signal ?? undefined, delivery);
    const location = redirections.has(response.status) ? response.headers.get("location") : null;
    if (location === null || location === "") return response;
    // The body of a redirect may never end.
    void response.body?.cancel().catch(() => undefined);
    request = redirected(request, response.status, location);
  }
  throw new TypeError(`fetch failed: the server redirected the request more than ${MOST_REDIRECTS} times`);
}

/** Headers that the connection sets itself. */
const ownHeaders: ReadonlySet<string> = new Set([
  "connection",
  "content-length",
  "expect",
  "keep-alive",
  "transfer-encoding",
  "upgrade",
]);

function requestOf(input: string | URL | Request, { headers: given, body }: RequestInit): SentRequest {
  const fields = given instanceof Headers ? given : new Headers(given);
  // Compression delays a stream.
  const headers: Record<string, string> = { "accept-encoding": "identity" };
  for (const [name, value] of fields) if (!ownHeaders.has(name)) headers[name] = value;
  if (typeof body !== "string") throw new TypeError("fetch failed: the body must be a string");
  return { url: new URL(input instanceof Request ? input.url : input), method: "POST", headers, body };
}

/** The only headers that a redirect to another server keeps. */
const sharedHeaders: ReadonlySet<string> = new Set(["accept", "accept-encoding", "content-type", "user-agent"]);

function redirected(request: SentRequest, status: number, location: string): SentRequest {
  const url = URL.canParse(location, request.url.href) ? new URL(location, request.url) : undefined;
  if (url?.protocol !== "http:" && url?.protocol !== "https:")
    throw new TypeError("fetch failed: the server redirected the request to an address that is not http or https");
  const isForeign = url.origin !== request.url.origin;
  const isRepeated = status === 307 || status === 308;
  const kept = Object.entries(request.headers).filter(
    ([name]) => (!isForeign || sharedHeaders.has(name)) && (isRepeated || name !== "content-type"),
  );
  const headers = Object.fromEntries(kept);
  return isRepeated ? { ...request, url, headers } : { url, method: "GET", headers, body: null };
}

/** A free connection may have been closed without this process noticing if nothing was read for this many milliseconds. */
const UNHEARD_MS = 5;
let lastHeard = 0;

async function sent(
  { url, method, headers, body }: SentRequest,
  signal: AbortSignal | undefined,
  delivery: Delivery | undefined,
): Promise<Response> {
  // `undici` marks a connection as free one event loop turn after its response.
  await nextEventLoopTurn();
  // That turn may have begun before the sockets were read.
  if (performance.now() - lastHeard > UNHEARD_MS) await nextEventLoopTurn();
  const options = { origin: url.origin, path: url.pathname + url.search, method, headers, body };
  return await new Promise((resolve, reject) => {
    const exchange = new Exchange({ options, signal, delivery, resolve, reject });
    exchange.begin();
  });
}

interface ExchangeParts {
  readonly options: Dispatcher.DispatchOptions & { readonly origin: string };
  readonly signal: AbortSignal | undefined;
  readonly delivery: Delivery | undefined;
  readonly resolve: (response: Response) => void;
  readonly reject: (error: Error) => void;
}

/** Unread bytes of a body at which the connection is paused. */
const MOST_UNREAD = 2 ** 20;
/** A `Response` with one of these statuses has no body. */
const bodiless: ReadonlySet<number> = new Set([204, 205, 304]);

/** One request and its response; receives the connection's events. */
class Exchange implements Dispatcher.DispatchHandler {
  readonly #parts: ExchangeParts;
  #connection: Dispatcher.DispatchController | undefined;
  #body: ReadableStreamDefaultController<Uint8Array> | undefined;
  #isWaiting = false;
  #isOver = false;
  readonly #onAbort = (): void => this.#fail(reasonOf(this.#parts.signal));

  constructor(parts: ExchangeParts) {
    this.#parts = parts;
  }

  begin(): void {
    const { signal, options } = this.#parts;
    if (signal?.aborted) return this.#fail(reasonOf(signal));
    signal?.addEventListener("abort", this.#onAbort, { once: true });
    this.#isWaiting = true;
    connectionsTo(options.origin).await();
    dispatcher().dispatch(options, this);
  }

  onRequestStart(connection: Dispatcher.DispatchController): void {
    if (this.#isOver) {
      connection.abort(new Error("The request was ended before it was sent."));
      return;
    }
    this.#connection = connection;
    this.#endWaiting();
    if (this.#parts.delivery) this.#parts.delivery.wasSent = true;
  }

  onResponseStart(_connection: Dispatcher.DispatchController, status: number, fields: IncomingFields): void {
    // Interim (1xx) responses precede the final one.
    if (status < 200 || this.#isOver) return;
    const headers = headersOf(fields);
    if (status > 599) return this.#fail(new TypeError(`fetch failed: the server answered with the status ${status}`));
    if (bodiless.has(status)) return this.#parts.resolve(new Response(null, { status, headers }));
    const body = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#body = controller;
        },
        pull: () => this.#connection?.resume(),
        cancel: () => this.#end(new Error("The response body was cancelled.")),
      },
      { highWaterMark: MOST_UNREAD, size: ({ byteLength }) => byteLength },
    );
    const codings = codingsOf(headers.get("content-encoding") ?? "");
    if (codings.length === 0) return this.#parts.resolve(new Response(body, { status, headers }));
    unpacked(body, codings).then(
      (plain) => this.#parts.resolve(new Response(plain, { status, headers })),
      (error: Error) => this.#fail(error),
    );
  }

  onResponseData(connection: Dispatcher.DispatchController, bytes: Buffer): void {
    lastHeard = performance.now();
    if (this.#isOver || this.#body === undefined) return;
    this.#body.enqueue(bytes);
    if ((this.#body.desiredSize ?? 0) <= 0) connection.pause();
  }

  onResponseEnd(): void {
    lastHeard = performance.now();
    if (this.#isOver) return;
    this.#isOver = true;
    this.#release();
    this.#body?.close();
  }

  onResponseError(_connection: Dispatcher.DispatchController, error: Error): void {
    if (this.#isOver) return;
    this.#endWaiting();
    if (error === abandoned) {
      this.#release();
      this.begin();
      return;
    }
    const hasBegun = this.#body !== undefined;
    const cause = isClosed(error) ? closedError(hasBegun ? "aborted" : "socket hang up") : error;
    this.#fail(new TypeError(hasBegun ? "terminated" : `fetch failed: ${cause.message}`, { cause }));
  }

  #fail(error: Error): void {
    if (this.#isOver) return;
    this.#body?.error(error);
    this.#parts.reject(error);
    this.#end(error);
  }

  /** Ends the exchange and its connection. */
  #end(reason: Error): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#release();
    this.#connection?.abort(reason);
    this.#endWaiting();
  }

  #release(): void {
    this.#parts.signal?.removeEventListener("abort", this.#onAbort);
  }

  #endWaiting(): void {
    if (!this.#isWaiting) return;
    this.#isWaiting = false;
    connectionsTo(this.#parts.options.origin).endAwait();
  }
}

type IncomingFields = Readonly<Record<string, string | readonly string[] | undefined>>;

function headersOf(fields: IncomingFields): Headers {
  const headers = new Headers();
  for (const [name, value] of Object.entries(fields)) {
    if (typeof value === "string") headers.append(name, value);
    else for (const each of value ?? []) headers.append(name, each);
  }
  return headers;
}

function reasonOf(signal: AbortSignal | undefined): Error {
  const reason: unknown = signal?.reason;
  return reason instanceof Error ? reason : new Error(String(reason));
}

/** Whether the server closed the connection before the response was complete. */
function isClosed(error: Error & { readonly code?: unknown }): boolean {
  return error.code === "UND_ERR_SOCKET" || error.code === "UND_ERR_RES_CONTENT_LENGTH_MISMATCH";
}

/** The error that Node reports for this case; readers of logs recognize its code. */
function closedError(words: string): Error {
  return Object.assign(new Error(words), { code: "ECONNRESET" });
}

/** The error of a pending connection that no request needs any more. */
const abandoned = new Error("The connection is not needed any more.");

/** The pending connections to one server, and the number of requests that wait for one. */
class Connecting {
  readonly #origin: string;
  readonly #sockets = new Set<Socket>();
  #waiting = 0;

  constructor(origin: string) {
    this.#origin = origin;
  }

  await(): void {
    this.#waiting += 1;
  }

  /** Called when a request stops waiting; ends surplus pending connections, oldest first. */
  endAwait(): void {
    this.#waiting -= 1;
    for (const socket of this.#sockets) {
      if (this.#sockets.size <= this.#waiting) break;
      this.#sockets.delete(socket);
      socket.destroy(abandoned);
    }
    if (this.#waiting === 0) connecting.delete(this.#origin);
  }

  add(socket: Socket): void {
    this.#sockets.add(socket);
  }

  delete(socket: Socket): void {
    this.#sockets.delete(socket);
  }
}

const connecting = new Map<string, Connecting>();

function connectionsTo(origin: string): Connecting {
  let known = connecting.get(origin);
  if (known === undefined) connecting.set(origin, (known = new Connecting(origin)));
  return known;
}

/** How long a free connection is kept, in milliseconds: by default, and at most if the server announces a time. */
const IDLE_MS = 30_000;
const LONGEST_IDLE_MS = 600_000;
/** How long a proxy may take to open a tunnel, in milliseconds; `undici` does not report which request a tunnel is for. */
const LONGEST_OPENING_MS = 60_000;

let shared: Dispatcher | undefined;

/** The connections of this process. */
function dispatcher(): Dispatcher {
  if (shared === undefined) {
    const options: Agent.Options = {
      connect,
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: IDLE_MS,
      keepAliveMaxTimeout: LONGEST_IDLE_MS,
      allowH2: false,
    };
    const clientFactory = (proxy: URL, given: object): Dispatcher =>
      new Pool(proxy, { ...given, headersTimeout: LONGEST_OPENING_MS });
    shared = usesProxies() ? new EnvHttpProxyAgent({ ...options, clientFactory }) : new Agent(options);
  }
  return shared;
}

/** Follows Node's rule for `fetch`: the proxy variables apply only with this setting. */
function usesProxies(): boolean {
  const flags = [...process.execArgv, ...(process.env["NODE_OPTIONS"] ?? "").split(" ")];
  return process.env["NODE_USE_ENV_PROXY"] === "1" || flags.includes("--use-env-proxy");
}

/** The last TLS session of each server, which shortens the next handshake. */
const sessions = new Map<string, Buffer>();
const MOST_SESSIONS = 100;

/** Connects like `undici`'s own connector, but tracks the pending socket so that it can be ended when no request needs it. */
function connect(options: buildConnector.Options, callback: buildConnector.Callback): void {
  const { protocol, host, hostname, port, servername } = options;
  const isSafe = protocol === "https:";
  const pending = connectionsTo(`${protocol}//${host ?? hostname}`);
  const name = servername ?? (isIP(hostname) === 0 ? hostname : "");
  const key = `${name} ${hostname}:${port}`;
  const socket = isSafe
    ? connectSafely({
        host: hostname,
        port: Number(port || 443),
        servername: name,
        session: sessions.get(key),
        ALPNProtocols: ["http/1.1"],
      })
    : connectPlain({ host: hostname, port: Number(port || 80) });
  pending.add(socket);
  socket.setNoDelay(true).setKeepAlive(true, 60_000);
  socket.on("session", (session: Buffer) => {
    if (sessions.size >= MOST_SESSIONS) sessions.clear();
    sessions.set(key, session);
  });
  const isMade = (): void => {
    pending.delete(socket);
    socket.off("error", onError);
    callback(null, socket);
  };
  const onError = (error: Error): void => {
    pending.delete(socket);
    callback(error, null);
  };
  socket.once(isSafe ? "secureConnect" : "connect", isMade).once("error", onError);
}

/** The content codings of a body, last applied first; empty if one is unknown, so that the body is passed on unchanged. */
function codingsOf(header: string): readonly Coding[] {
  const names = header.split(",").map((name) => name.trim().toLowerCase().replace("x-gzip", "gzip"));
  const packed = names.filter((name) => name !== "identity" && name !== "");
  return packed.every((name): name is Coding => codings.has(name)) ? packed.toReversed() : [];
}

type Coding = "gzip" | "deflate" | "br";
const codings: ReadonlySet<string> = new Set(["gzip", "deflate", "br"]);

/** Decompresses a body that the server compressed although `identity` was requested. A truncated body yields the data it has. */
async function unpacked(
  body: ReadableStream<Uint8Array>,
  packings: readonly Coding[],
): Promise<ReadableStream<Uint8Array>> {
  const [zlib, { pipeline, Readable }] = await Promise.all([import("node:zlib"), import("node:stream")]);
  const { Z_SYNC_FLUSH: finishFlush, BROTLI_OPERATION_FLUSH } = zlib.constants;
  const unpackers: Readonly<Record<Coding, () => Transform>> = {
    gzip: () => zlib.createGunzip({ finishFlush }),
    deflate: () => zlib.createInflate({ finishFlush }),
    br: () => zlib.createBrotliDecompress({ finishFlush: BROTLI_OPERATION_FLUSH }),
  };
  const stages = packings.map((coding) => unpackers[coding]());
  const plain = stages.at(-1);
  if (plain === undefined) return body;
  // Errors reach the reader of the last stage.
  pipeline([Readable.fromWeb(body as NodeStream), ...stages], () => undefined);
  return Readable.toWeb(plain) as ReadableStream<Uint8Array>;
}
