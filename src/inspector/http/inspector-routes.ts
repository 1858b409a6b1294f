import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { type WebSocket, WebSocketServer } from "ws";
import { z } from "zod";
import { hasMoreValues } from "../../base/index.ts";
import {
  AgentBusyError,
  AlreadyOwnedError,
  InvalidInputError,
  NotFoundError,
  RequestConflictError,
  TroupeError,
  TurnConflictError,
} from "../../errors/index.ts";
import type { Feed } from "../feed/feed.ts";
import type { Failure, Scope } from "../feed/wire.ts";
import { type ApiRoute, apiRoutes, FasterError, partsIn } from "./api.ts";
import { sendAsset, sendPage } from "./assets.ts";
import { FeedSocket } from "./feed-socket.ts";
import { bearerOf, FEED_PROTOCOL, Gate, type GateOptions, protocolTokenOf } from "./gate.ts";

/** Most bytes of a POST body, which may contain images. */
const MOST_BODY_BYTES = 12_000_000;
/** Most JSON values in a body: members, items and containers. */
const MOST_BODY_VALUES = 50_000;
const MOST_CLIENTS = 16;
/** Most bytes of one client message. */
const MOST_MESSAGE_BYTES = 4_096;
/** Most bytes of answers that clients have not read yet. A further answer that exceeds it is refused. */
const MOST_WAITING_BYTES = 12_000_000;

export interface RoutesOptions extends GateOptions {
  readonly feed: Feed;
  /** Path prefix of all addresses. Default: none. */
  readonly basePath?: string | undefined;
}

/**
 * The page, the REST routes and the WebSocket of a feed, for a server of `node:http`.
 * Owns: the sockets of the feed. Does not own: the server, the feed.
 */
export class InspectorRoutes {
  readonly #gate: Gate;
  readonly #feed: Feed;
  readonly #routes: readonly ApiRoute[];
  readonly #sockets: WebSocketServer;
  readonly #base: string;
  #waitingBytes = 0;

  constructor({ feed, basePath = "", ...gate }: RoutesOptions) {
    this.#base = basePath;
    this.#gate = new Gate(gate);
    this.#feed = feed;
    this.#routes = apiRoutes(feed, gate.tokens.watch);
    this.#sockets = new WebSocketServer({
      noServer: true,
      maxPayload: MOST_MESSAGE_BYTES,
      handleProtocols: () => FEED_PROTOCOL,
      // Batches are similar: with the dictionary of the previous batches they compress to a quarter.
      perMessageDeflate: { threshold: 512, zlibDeflateOptions: { level: 4, memLevel: 7 } },
    });
  }

  /** Whether a path belongs to the inspector, for a server that also has other paths. */
  owns(url: string | undefined): boolean {
    const path = this.#pathOf(url);
    return path === "/" || path === "/feed" || path.startsWith("/assets/") || path.startsWith("/api/");
  }

  /** Answers any request; answers 404 to paths that are not the inspector's. */
  readonly handle = (request: IncomingMessage, response: ServerResponse): void => {
    void this.#answer(request, response).catch(() => {
      if (response.headersSent) response.destroy();
      else empty(response, 500);
    });
  };

  readonly upgrade = (request: IncomingMessage, socket: Duplex, head: Buffer): void => {
    socket.on("error", () => socket.destroy());
    const { headers, url } = request;
    const scope = this.#gate.scopeOf(headers, protocolTokenOf(headers));
    if (scope === 403) return refuse(socket, "403 Forbidden");
    if (scope === 401) return refuse(socket, "401 Unauthorized");
    if (this.#pathOf(url) !== "/feed") return refuse(socket, "404 Not Found");
    if (this.#sockets.clients.size >= MOST_CLIENTS) return refuse(socket, "503 Service Unavailable");
    this.#sockets.handleUpgrade(request, socket, head, (client: WebSocket) => new FeedSocket(this.#feed, client));
  };

  close(): void {
    for (const client of this.#sockets.clients) client.terminate();
    this.#sockets.close();
  }

  /** The path below the base; empty if the address is not below it. */
  #pathOf(url: string | undefined): string {
    const path = pathOf(url);
    return path.startsWith(`${this.#base}/`) ? path.slice(this.#base.length) : "";
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    response.setHeader("cache-control", "no-store");
    response.setHeader("x-content-type-options", "nosniff");
    response.setHeader("referrer-policy", "no-referrer");
    response.setHeader("cross-origin-resource-policy", "same-origin");
    const path = this.#pathOf(request.url);
    if (!path.startsWith("/api/")) return await this.#answerPage(request, response, path);
    const scope = this.#gate.scopeOf(request.headers, bearerOf(request.headers));
    if (typeof scope === "number") return empty(response, scope);
    const routes = this.#routes.filter((route) => partsIn(path, route.path) !== undefined);
    if (routes.length === 0) return failed(response, 404, { code: "not_found", message: "there is no such address" });
    const route = routes.find(({ method }) => method === request.method);
    if (!route) return failed(response, 405, { code: "invalid", message: `this address takes ${routes[0]?.method}` });
    if (route.scope === "act" && scope !== "act") return empty(response, 403);
    await this.#call(request, response, { route, scope, path });
  }

  async #answerPage(request: IncomingMessage, response: ServerResponse, path: string): Promise<void> {
    if (!this.#gate.isOurName(request.headers)) return empty(response, 403);
    if (request.method !== "GET" && request.method !== "HEAD") return empty(response, 405);
    if (path === "/") return await sendPage(response, this.#base);
    const isSent = path.startsWith("/assets/") && (await sendAsset(response, path.slice("/assets/".length)));
    if (!isSent) empty(response, 404);
  }

  async #call(
    request: IncomingMessage,
    response: ServerResponse,
    { route, scope, path }: { readonly route: ApiRoute; readonly scope: Scope; readonly path: string },
  ): Promise<void> {
    response.setHeader("content-security-policy", "default-src 'none'");
    const left = new AbortController();
    response.on("close", () => left.abort());
    try {
      const body = route.method === "POST" ? await jsonBody(request) : undefined;
      const query = new URLSearchParams((request.url ?? "").split("?", 2)[1] ?? "");
      const parts = partsIn(path, route.path) ?? [];
      const answer = await route.answer({ parts, query, scope, body, signal: left.signal });
      if (answer === undefined) return empty(response, 204);
      this.#send(response, JSON.stringify(answer));
    } catch (error) {
      const { status, failure } = failureOf(error);
      failed(response, status, failure);
    }
  }

  /** Limits the unread bytes, so that clients that do not read their answers cannot fill the memory. */
  #send(response: ServerResponse, text: string): void {
    const content = Buffer.from(text);
    if (this.#waitingBytes > 0 && this.#waitingBytes + content.length > MOST_WAITING_BYTES) {
      return failed(response, 503, { code: "too_many", message: "other clients have not read their answers yet" });
    }
    this.#waitingBytes += content.length;
    response.on("close", () => {
      this.#waitingBytes -= content.length;
    });
    response.setHeader("content-type", "application/json; charset=utf-8");
    response.end(content);
  }
}

/** Parsed by hand: a request line may contain anything, and `URL` throws for some of it. */
function pathOf(url: string | undefined): string {
  return (url ?? "").split("?", 1)[0] ?? "";
}

class BodyError extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** Requires the type `application/json`, which a form on another site cannot send. */
async function jsonBody(request: IncomingMessage): Promise<unknown> {
  const [type = ""] = (request.headers["content-type"] ?? "").split(";", 1);
  if (type.trim().toLowerCase() !== "application/json") throw new BodyError(415, "send JSON, as application/json");
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of request as AsyncIterable<Buffer>) {
    size += part.length;
    if (size > MOST_BODY_BYTES) throw new BodyError(413, `the body has more than ${MOST_BODY_BYTES} bytes`);
    parts.push(part);
  }
  const text = Buffer.concat(parts).toString("utf8");
  if (hasMoreValues(text, MOST_BODY_VALUES)) {
    throw new BodyError(413, `the body has more than ${MOST_BODY_VALUES} values`);
  }
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw new BodyError(400, "the body is not valid JSON");
  }
}

function failureOf(error: unknown): { readonly status: number; readonly failure: Failure["error"] } {
  if (error instanceof BodyError) return { status: error.status, failure: { code: "invalid", message: error.message } };
  if (error instanceof z.ZodError) {
    const issues = error.issues.map(({ path, message }) => ({ path: path.join("."), message }));
    return { status: 400, failure: { code: "invalid", message: "the request does not fit its schema", issues } };
  }
  if (!(error instanceof TroupeError)) {
    return { status: 500, failure: { code: "internal", message: "the inspector failed; its process has more" } };
  }
  const { code, message } = error;
  const issues = error instanceof InvalidInputError && error.issues.length > 0 ? { issues: error.issues } : {};
  const request = error instanceof FasterError && error.request ? { request: error.request } : {};
  return { status: statusOf(error), failure: { code, message, ...issues, ...request } };
}

function statusOf(error: TroupeError): number {
  if (error instanceof NotFoundError) return 404;
  if (error instanceof InvalidInputError) return 400;
  const isConflict = [AgentBusyError, AlreadyOwnedError, RequestConflictError, TurnConflictError].some(
    (kind) => error instanceof kind,
  );
  if (isConflict) return 409;
  // Not 403, because that status means that the token is not allowed to do this.
  if (error.family === "rejection") return 422;
  return error.retryable ? 503 : 500;
}

function failed(response: ServerResponse, status: number, error: Failure["error"]): void {
  const body: Failure = { error };
  response.statusCode = status;
  response.setHeader("content-type", "application/json; charset=utf-8");
  response.end(JSON.stringify(body));
}

function empty(response: ServerResponse, status: number): void {
  response.statusCode = status;
  if (status !== 204) response.setHeader("content-length", 0);
  response.end();
}

function refuse(socket: Duplex, status: string): void {
  socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
}
