/*
 * Connections to servers of models, kept while they are free. Owns the sockets; what is sent and told is its user's.
 * 1. A connection has one exchange at a time, and nothing is sent on a second one after it was on a first.
 * 2. What comes while nothing is asked ends the connection. One that has lain free is listened to before it is used again.
 * 3. A free connection keeps no process alive. It is closed after 30 s, or when its server says.
 */
import { connect, isIP, type Socket } from "node:net";
import type { connect as connectSafely } from "node:tls";
import { type AnswerListener, AnswerReader } from "./http-reader.ts";

/** What of a request is written, one after the other: texts of one byte a character, or bytes. */
export type RequestParts = readonly (string | Buffer)[];

/** One exchange, as a connection knows it. */
export interface LineUser extends AnswerListener {
  /** Called with what ends the exchange early, before anything else is; again if nothing was sent and another connection has to do it. */
  onWay(way: { readonly end: (reason: Error) => void }): void;
  /** The request is about to be written. */
  onSent(): void;
  onEnd(): void;
  /** Without an error: the server closed the connection. */
  onError(error?: Error): void;
}

/** Most connections to one server that are kept while they are free. */
const mostFree = 256;
const idleMs = 30_000;
/** No connection is kept longer than this, whatever its server says, and all are given up this long before the server does. */
const longestIdleMs = 600_000;
const givenUpEarlyMs = 2_000;
/** After so long free, in milliseconds, it is looked at what came meanwhile, or whether it has ended, before a connection is used. */
const unheardMs = 5;
/** Bytes that are read at once. */
const readLength = 16_384;

/** The connections to one server. */
export class LinePool {
  readonly #url: URL;
  readonly #serverName: string;
  readonly #connectSafely: typeof connectSafely | undefined;
  readonly #free: Line[] = [];
  /** The last session with the server, which shortens the next handshake. */
  session: Buffer | undefined;

  /** The pool of a server, one for all who ask. A host that is given stands in the request, and is the one that TLS checks. */
  static async of(url: URL, host: string | undefined): Promise<LinePool> {
    const isSafe = url.protocol === "https:";
    const name = isSafe ? nameOf(host === undefined ? url.hostname : host.replace(/:\d*$/, "")) : "";
    const key = `${url.origin} ${name}`;
    const safely = isSafe ? (await import("node:tls")).connect : undefined;
    const known = pools.get(key)?.deref();
    if (known !== undefined) return known;
    const pool = new LinePool(url, name, safely);
    pools.set(key, new WeakRef(pool));
    goneKeys.register(pool, key);
    return pool;
  }

  private constructor(url: URL, serverName: string, safely: typeof connectSafely | undefined) {
    this.#url = url;
    this.#serverName = serverName;
    this.#connectSafely = safely;
  }

  /** Sends a request over a free connection, else over a new one. */
  send(user: LineUser, request: RequestParts): void {
    (this.#free.pop() ?? new Line(this)).send(user, request);
  }

  /** Keeps a connection, if there is room. */
  keep(line: Line): boolean {
    return this.#free.length < mostFree && this.#free.push(line) > 0;
  }

  forget(line: Line): void {
    const place = this.#free.lastIndexOf(line);
    if (place !== -1) this.#free.splice(place, 1);
  }

  /** A connection that is being made; the bytes are called with whatever comes. */
  connect(onBytes: (bytes: Buffer) => void, onOpen: () => void): Socket {
    const { hostname, port } = this.#url;
    const onread = {
      // Read into the same memory each time, past the queue of a stream.
      buffer: Buffer.allocUnsafeSlow(readLength),
      callback: (length: number, buffer: Uint8Array): boolean => {
        onBytes((buffer as Buffer).subarray(0, length));
        return true;
      },
    };
    const host = hostname.replace(/^\[(.*)\]$/, "$1");
    if (this.#connectSafely === undefined)
      return connect({ host, port: Number(port === "" ? 80 : port), onread }).once("connect", onOpen);
    const place = { host, port: Number(port === "" ? 443 : port), onread };
    const named = this.#serverName === "" ? {} : { servername: this.#serverName };
    const known = this.session === undefined ? {} : { session: this.session };
    // It is written to when the server has shown who it is, and not before.
    const socket = this.#connectSafely({ ...place, ...named, ...known, ALPNProtocols: ["http/1.1"] });
    socket.once("secureConnect", () => {
      // Of an older protocol it is there already, of a newer one it comes later.
      if (socket.getProtocol() !== "TLSv1.3") this.session = socket.getSession() ?? this.session;
      onOpen();
      socket.on("session", (session) => {
        this.session = session;
      });
    });
    return socket;
  }
}

/** Those that somebody has still, or one of whose connections is open. */
const pools = new Map<string, WeakRef<LinePool>>();
const goneKeys = new FinalizationRegistry<string>((key) => {
  // Another may have come in its place.
  if (pools.get(key)?.deref() === undefined) pools.delete(key);
});

/** The name of a server for TLS, which numbers are not. */
function nameOf(host: string): string {
  const isNumber = host.startsWith("[") || isIP(host) !== 0;
  return isNumber ? "" : host;
}

/** A connection; it is made for the first request. */
class Line {
  readonly #pool: LinePool;
  readonly #socket: Socket;
  #isOpen = false;
  #user: LineUser | undefined;
  #reader: AnswerReader | undefined;
  /** What is to be sent as soon as that may be. */
  #waiting: RequestParts | undefined;
  #freeSince = 0;
  #idle: NodeJS.Timeout | undefined;
  #idleMs = 0;

  constructor(pool: LinePool) {
    this.#pool = pool;
    this.#socket = pool.connect(
      (bytes) => this.#onBytes(bytes),
      () => {
        this.#isOpen = true;
        this.#write();
      },
    );
    this.#socket.setNoDelay(true).setKeepAlive(true, 60_000);
    this.#socket.on("error", (error) => this.#fail(error));
    this.#socket.on("end", () => this.#onClosed());
    this.#socket.on("close", () => this.#onClosed());
  }

  send(user: LineUser, request: RequestParts): void {
    this.#user = user;
    this.#waiting = request;
    user.onWay(this);
    if (!this.#isOpen) return;
    this.#socket.ref();
    if (performance.now() - this.#freeSince < unheardMs) this.#write();
    // The first of the two may come before anything is read.
    else setImmediate(() => setImmediate(() => this.#write()));
  }

  /** Ends the connection, also one that is being made. Its user is told nothing. */
  end(): void {
    this.#user = undefined;
    this.#waiting = undefined;
    this.#pool.forget(this);
    clearTimeout(this.#idle);
    this.#socket.destroy();
  }

  #write(): void {
    const request = this.#waiting;
    const user = this.#user;
    if (request === undefined || user === undefined) return;
    this.#waiting = undefined;
    this.#reader = new AnswerReader(user);
    user.onSent();
    for (const part of request) this.#socket.write(part, "latin1");
  }

  #onBytes(bytes: Buffer): void {
    const user = this.#user;
    const reader = this.#reader;
    if (user === undefined || reader === undefined || this.#waiting !== undefined) return this.#onClosed();
    try {
      reader.read(bytes);
    } catch (thrown) {
      this.#fail(thrown instanceof Error ? thrown : new Error(String(thrown)));
      return;
    }
    // The user may have ended it meanwhile.
    if (reader.hasEnded && this.#user === user) this.#release(user, reader);
  }

  /** The exchange has ended well: the connection is free for another one, unless it is over too, or the request not all sent. */
  #release(user: LineUser, reader: AnswerReader): void {
    this.#user = undefined;
    this.#reader = undefined;
    const told = reader.stayMs;
    const stayMs = told === undefined ? idleMs : Math.min(told - givenUpEarlyMs, longestIdleMs);
    const isUsable = reader.mayStay && stayMs > 0 && this.#socket.writableLength === 0;
    if (isUsable && this.#pool.keep(this)) this.#rest(stayMs);
    else this.end();
    user.onEnd();
  }

  #rest(stayMs: number): void {
    this.#socket.unref();
    this.#freeSince = performance.now();
    if (this.#idle !== undefined && this.#idleMs === stayMs) {
      this.#idle.refresh();
      return;
    }
    clearTimeout(this.#idle);
    this.#idleMs = stayMs;
    this.#idle = setTimeout(() => {
      if (this.#user === undefined) this.end();
    }, stayMs).unref();
  }

  /** The server has ended the connection, or what it sends is nobody's. */
  #onClosed(): void {
    const user = this.#user;
    const reader = this.#reader;
    if (user === undefined) this.end();
    else if (this.#waiting !== undefined && this.#isOpen) this.#moveOn(user, this.#waiting);
    else if (reader?.finish() === true) this.#release(user, reader);
    else this.#fail();
  }

  /** Nothing has been sent here: another connection does it. */
  #moveOn(user: LineUser, request: RequestParts): void {
    this.end();
    this.#pool.send(user, request);
  }

  #fail(error?: Error): void {
    const user = this.#user;
    if (user !== undefined && this.#isOpen && this.#waiting !== undefined) return this.#moveOn(user, this.#waiting);
    this.end();
    user?.onError(error);
  }
}
