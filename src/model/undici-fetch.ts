/*
 * The `fetch` of the clients that we construct: POSTs of JSON over kept-alive connections of `undici`. It sets no time limits: the
 * caller's signal ends a request.
 * 1. Nothing is sent twice. A connection that breaks under a request ends it with an error.
 * 2. A request that is ended early leaves no connection behind, not even one that was still being made; a tunnel through a proxy
 *    that is still being made is given up after a minute.
 * 3. A redirect to another server takes none of the caller's headers there, since each of them may be a credential.
 */
import { connect as connectPlain, isIP, type Socket } from "node:net";
import type { Transform } from "node:stream";
import type { ReadableStream as NodeStream } from "node:stream/web";
import { connect as connectSafely } from "node:tls";
import { setImmediate as nextEventLoopTurn } from "node:timers/promises";
import { Agent, type buildConnector, type Dispatcher, EnvHttpProxyAgent, Pool } from "undici";

/** Is told what becomes of a request. */
export interface Delivery {
  /** Whether bytes of the request may have reached a server; `undefined` if not known. */
  wasSent: boolean | undefined;
}

interface SentRequest {
  readonly url: URL;
  readonly method: "POST" | "GET";
  /** By their names in small letters. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | null;
}

/** As many redirects as `fetch` follows. */
const MOST_REDIRECTS = 20;
const redirections: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/**
 * Sends a request with a text as its body and follows redirects as `fetch` does. Rejects with the reason of the signal, else with a
 * `TypeError` whose `cause` is the connection's error.
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
  // A packed stream is delayed.
  const headers: Record<string, string> = { "accept-encoding": "identity" };
  for (const [name, value] of fields) if (!ownHeaders.has(name)) headers[name] = value;
  if (typeof body !== "string") throw new TypeError("fetch failed: the body is not a text");
  return { url: new URL(input instanceof Request ? input.url : input), method: "POST", headers, body };
}

/** All that another server gets of the headers. */
const sharedHeaders: ReadonlySet<string> = new Set(["accept", "accept-encoding", "content-type", "user-agent"]);

function redirected(request: SentRequest, status: number, location: string): SentRequest {
  const url = URL.canParse(location, request.url.href) ? new URL(location, request.url) : undefined;
  if (url?.protocol !== "http:" && url?.protocol !== "https:")
    throw new TypeError("fetch failed: the server redirected the request to no http or https address");
  const isForeign = url.origin !== request.url.origin;
  const isRepeated = status === 307 || status === 308;
  const kept = Object.entries(request.headers).filter(
    ([name]) => (!isForeign || sharedHeaders.has(name)) && (isRepeated || name !== "content-type"),
  );
  const headers = Object.fromEntries(kept);
  return isRepeated ? { ...request, url, headers } : { url, method: "GET", headers, body: null };
}

/** After so long, in milliseconds, a free connection may have been closed without this process having read it. */
const UNHEARD_MS = 5;
let lastHeard = 0;

async function sent(
  { url, method, headers, body }: SentRequest,
  signal: AbortSignal | undefined,
  delivery: Delivery | undefined,
): Promise<Response> {
  // The library takes a connection for free one turn of the event loop after its response.
  await nextEventLoopTurn();
  // The turn may have begun before the sockets were read.
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

/** Bytes of a body that wait to be read before the connection is paused. */
const MOST_UNREAD = 2 ** 20;
/** A `Response` of these has no body. */
const bodiless: ReadonlySet<number> = new Set([204, 205, 304]);

/** One request and its response, as the connection tells of them. */
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
    // Interim answers precede the one that counts.
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
        cancel: () => this.#end(new Error("The rest of the body is not needed.")),
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

/** Whether the other side closed the connection in the middle. */
function isClosed(error: Error & { readonly code?: unknown }): boolean {
  return error.code === "UND_ERR_SOCKET" || error.code === "UND_ERR_RES_CONTENT_LENGTH_MISMATCH";
}

/** The same error in the words of Node, whose codes are known to readers of logs. */
function closedError(words: string): Error {
  return Object.assign(new Error(words), { code: "ECONNRESET" });
}

/** Ends a connection that is being made and that no request waits for. */
const abandoned = new Error("The connection is not needed any more.");

/** The connections to one server that are being made, and the requests that wait for one. */
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

  /** A request does not wait any more: connections that are too many now are ended, the oldest first. */
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

/** How long a free connection is kept, in milliseconds: by default, and at most when its server names a time. */
const IDLE_MS = 30_000;
const LONGEST_IDLE_MS = 600_000;
/** How long a proxy may take to open a tunnel, in milliseconds: the library does not say which tunnel it makes for which request. */
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

/** Node's own rule for `fetch`: the proxies of the environment count only if it is told so. */
function usesProxies(): boolean {
  const flags = [...process.execArgv, ...(process.env["NODE_OPTIONS"] ?? "").split(" ")];
  return process.env["NODE_USE_ENV_PROXY"] === "1" || flags.includes("--use-env-proxy");
}

/** The last TLS session with each server, which shortens the next handshake. */
const sessions = new Map<string, Buffer>();
const MOST_SESSIONS = 100;

/** Makes a connection, as the library's own connector does, and ends it when no request waits for it any more. */
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

/** The codings of a body, the last one that was applied first; none where one is not known: then it is read as it is. */
function codingsOf(header: string): readonly Coding[] {
  const names = header.split(",").map((name) => name.trim().toLowerCase().replace("x-gzip", "gzip"));
  const packed = names.filter((name) => name !== "identity" && name !== "");
  return packed.every((name): name is Coding => codings.has(name)) ? packed.toReversed() : [];
}

type Coding = "gzip" | "deflate" | "br";
const codings: ReadonlySet<string> = new Set(["gzip", "deflate", "br"]);

/** Unpacks a body that the server has packed although it was asked not to; one that ends early as far as it goes. */
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
  // Its errors reach the reader of the last stage.
  pipeline([Readable.fromWeb(body as NodeStream), ...stages], () => undefined);
  return Readable.toWeb(plain) as ReadableStream<Uint8Array>;
}
