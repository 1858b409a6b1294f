import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { WebSocketServer, type WebSocket } from "ws";
import type { Inspector } from "./hub.ts";
import { STATELY_ORIGIN, statelyPage } from "./stately-page.ts";
import { type StoredTrees, storedFrames } from "./stored-frames.ts";
import { TreeFrames } from "./tree-frames.ts";

const mostClients = 8;

export interface StatelyOptions {
  readonly inspector: Inspector;
  /** The stores for agents that are not live or ended before the inspector started. */
  readonly trees: Iterable<StoredTrees>;
  /** Allowed values of `Host`. */
  readonly hosts: readonly string[];
  /** Compares a token with the token of the frames, which allows nothing else. */
  readonly isToken: (token: string) => boolean;
  /** Whether Stately's page is allowed. */
  readonly allowStately: boolean;
  /** Bytes buffered for a slow client before it is disconnected. */
  readonly mostWaitingBytes: number;
}

/** Stately's page and its frames. Its clients cannot set headers, so the token is in the address. */
export class StatelyRoutes {
  readonly #options: StatelyOptions;
  readonly #sockets = new WebSocketServer({ noServer: true, maxPayload: 1_024, perMessageDeflate: false });

  constructor(options: StatelyOptions) {
    this.#options = options;
    this.#sockets.on("connection", (socket, request: IncomingMessage) => {
      const client = new FrameClient(socket, options.mostWaitingBytes);
      const rootId = queryOf(request).get("run") ?? undefined;
      const frames = new TreeFrames({ rootId, send: (frame) => client.send(JSON.stringify(frame)) });
      socket.on("error", () => client.drop());
      frames.begin(options.inspector.frames());
      socket.on("close", options.inspector.subscribe(frames.take, frames.wants));
      storedFrames(options.trees, frames.rootId, frames.has).then(
        (stored) => frames.addStored(stored),
        () => client.drop(),
      );
    });
  }

  owns(path: string): boolean {
    return path === "/stately" || path === "/frames";
  }

  handle(request: IncomingMessage, response: ServerResponse, path: string): void {
    const isPage = path === "/stately" && this.#options.allowStately;
    if (!this.#isAdmitted(request)) response.statusCode = 403;
    else if (!isPage) response.statusCode = 404;
    else if (request.method !== "GET") response.statusCode = 405;
    else {
      // The request was admitted, so `Host` is one of this server's names.
      const { html, policy } = statelyPage(request.headers.host ?? "");
      response.setHeader("content-type", "text/html; charset=utf-8");
      response.setHeader("content-security-policy", policy);
      response.setHeader("cache-control", "no-store");
      response.setHeader("x-content-type-options", "nosniff");
      response.setHeader("referrer-policy", "no-referrer");
      return void response.end(html);
    }
    response.setHeader("content-length", 0);
    response.end();
  }

  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer, path: string): void {
    if (!this.#isAdmitted(request)) return refuse(socket, "403 Forbidden");
    if (path !== "/frames") return refuse(socket, "404 Not Found");
    if (this.#sockets.clients.size >= mostClients) return refuse(socket, "503 Service Unavailable");
    this.#sockets.handleUpgrade(request, socket, head, (client) => this.#sockets.emit("connection", client, request));
  }

  close(): void {
    for (const client of this.#sockets.clients) client.terminate();
    this.#sockets.close();
  }

  #isAdmitted({ headers, url }: IncomingMessage): boolean {
    const { host, origin } = headers;
    const { hosts, allowStately, isToken } = this.#options;
    if (host === undefined || !hosts.includes(host)) return false;
    const origins = [...hosts.map((own) => `http://${own}`), ...(allowStately ? [STATELY_ORIGIN] : [])];
    if (origin !== undefined && !origins.includes(origin)) return false;
    const token = queryOf({ url }).get("token");
    return token !== null && isToken(token);
  }
}

function queryOf({ url }: Pick<IncomingMessage, "url">): URLSearchParams {
  return new URLSearchParams((url ?? "").split("?", 2)[1] ?? "");
}

function refuse(socket: Duplex, status: string): void {
  socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
}

/** The next frame is sent once the socket buffers at most this many bytes. */
const socketBytes = 1_000_000;
/** Most bytes buffered for a client; above this it is disconnected. */
export const mostWaitingBytes = 32_000_000;

/**
 * The outgoing frames of one client.
 * Owns: the waiting frames. Does not own: the socket, but terminates it if it is too slow.
 */
export class FrameClient {
  readonly #socket: WebSocket;
  readonly #mostWaiting: number;
  #waiting: string[] = [];
  /** How many of the waiting frames are sent. */
  #sent = 0;
  #bytes = 0;
  #sending = false;

  constructor(socket: WebSocket, mostWaiting: number) {
    this.#socket = socket;
    this.#mostWaiting = mostWaiting;
  }

  send(text: string): void {
    if (this.#socket.readyState !== this.#socket.OPEN) return;
    this.#waiting.push(text);
    this.#bytes += text.length;
    if (this.#bytes + this.#socket.bufferedAmount > this.#mostWaiting) this.drop();
    else this.#pump();
  }

  drop(): void {
    this.#waiting = [];
    this.#sent = 0;
    this.#bytes = 0;
    this.#socket.terminate();
  }

  #pump(): void {
    if (this.#sending) return;
    this.#sending = true;
    while (this.#sent < this.#waiting.length && this.#socket.bufferedAmount < socketBytes) {
      const text = this.#waiting[this.#sent] ?? "";
      this.#sent += 1;
      this.#bytes -= text.length;
      this.#socket.send(text, () => this.#pump());
    }
    if (this.#sent * 2 >= this.#waiting.length) {
      this.#waiting = this.#waiting.slice(this.#sent);
      this.#sent = 0;
    }
    this.#sending = false;
  }
}
