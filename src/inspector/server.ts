import { createHash, timingSafeEqual, randomBytes } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import { WebSocketServer } from "ws";
import { flagRule, optionsOf, portRule, wholeNumberRule } from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import { FrameClient, mostWaitingBytes } from "./client.ts";
import type { BudgetFrame, InspectionFrame } from "./frames.ts";
import { createInspector, type Inspector, type InspectorOptions, inspectorRules } from "./hub.ts";
import { type Page, statelyPage, treePage, STATELY_ORIGIN } from "./page.ts";

export interface InspectorServerOptions {
  /** Default 0: any that is free. It is always bound to 127.0.0.1. */
  readonly port?: number | undefined;
  /** Lets the page https://stately.ai/inspect in, which is loaded from that site. It needs the token as well. Default false. */
  readonly allowStately?: boolean | undefined;
  /** Bytes that may wait for a slow client before it is dropped. Default 32,000,000. */
  readonly mostWaitingBytes?: number | undefined;
}

export interface InspectorServer {
  /** Where a browser sees the tree of actors; it holds the token. Print it once and treat it as a password. */
  readonly url: string;
  /** The same with Stately's page; undefined unless it was allowed. */
  readonly statelyUrl: string | undefined;
  /** Where a program gets the frames; with `&budgets=1` behind it also those of budgets. */
  readonly socketUrl: string;
  close(): Promise<void>;
}

const mostClients = 8;

const serverRules = {
  port: wholeNumberRule(0, 65_535),
  allowStately: flagRule,
  mostWaitingBytes: wholeNumberRule(1),
} as const;
const instead = { stately: "allowStately", host: "nothing: it is bound to 127.0.0.1" } as const;

/**
 * Serves an inspector's frames to browsers and programs of this machine: over WebSocket, one JSON text each.
 * Throws `InvalidInputError` when the port is taken or no port.
 */
export async function serveInspector(inspector: Inspector, given?: InspectorServerOptions): Promise<InspectorServer> {
  portRule("an inspector, as createInspector() makes it", ["frames", "subscribe"])(inspector, "serveInspector()");
  const options = optionsOf<InspectorServerOptions>(given, "serveInspector()", { rules: serverRules, instead });
  const { port: wanted = 0, allowStately = false, mostWaitingBytes: mostWaiting = mostWaitingBytes } = options;
  const token = randomBytes(24).toString("base64url");
  const server = createServer({ maxHeaderSize: 8_192, headersTimeout: 5_000, requestTimeout: 5_000 });
  const sockets = new WebSocketServer({ noServer: true, maxPayload: 1_024, perMessageDeflate: false });
  const port = await listen(server, wanted);
  const gate: Gate = { port, token, allowStately };
  server.on("request", (request, response) => answer(request, response, gate));
  server.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.on("error", () => socket.destroy());
    const { pathname, isWelcome } = visitOf(request, gate);
    if (!isWelcome) return refuse(socket, "403 Forbidden");
    if (pathname !== "/frames") return refuse(socket, "404 Not Found");
    if (sockets.clients.size >= mostClients) return refuse(socket, "503 Service Unavailable");
    sockets.handleUpgrade(request, socket, head, (client) => sockets.emit("connection", client, request));
  });
  sockets.on("connection", (socket, request: IncomingMessage) => {
    const client = new FrameClient(socket, mostWaiting);
    const send = (frame: InspectionFrame | BudgetFrame): void => client.send(JSON.stringify(frame));
    socket.on("close", inspector.subscribe(send));
    socket.on("error", () => client.drop());
    inspector.frames().forEach(send);
    if (queryOf(request).get("budgets") !== "1") return;
    socket.on("close", inspector.budgets.subscribe(send));
    inspector.budgets.frames().forEach(send);
  });
  // The inspector must not keep the process alive.
  server.unref();
  server.on("connection", (socket) => socket.unref());
  const origin = `http://127.0.0.1:${port}`;
  return {
    url: `${origin}/?token=${token}`,
    statelyUrl: allowStately ? `${origin}/stately?token=${token}` : undefined,
    socketUrl: `ws://127.0.0.1:${port}/frames?token=${token}`,
    async close() {
      for (const client of sockets.clients) client.terminate();
      sockets.close();
      server.closeAllConnections();
      await new Promise<void>((resolve) => void server.close(() => resolve()));
    },
  };
}

/** An inspector and its server in one: hand `onInspect` to `createRuntime`, and what that gives to `watch`. */
export async function startInspector(
  given?: InspectorServerOptions & InspectorOptions,
): Promise<InspectorServer & Pick<Inspector, "onInspect" | "watch">> {
  const rules = { ...serverRules, ...inspectorRules };
  const options = optionsOf<InspectorServerOptions & InspectorOptions>(given, "startInspector()", { rules, instead });
  const { now, keptEnded, ...serving } = options;
  const inspector = createInspector({ now, keptEnded });
  const server = await serveInspector(inspector, serving);
  return { ...server, onInspect: inspector.onInspect, watch: (runtime) => inspector.watch(runtime) };
}

async function listen(server: ReturnType<typeof createServer>, port: number): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", (cause: NodeJS.ErrnoException) => {
      const why = cause.code === "EADDRINUSE" ? "is taken" : `cannot be used (${cause.code ?? cause.message})`;
      reject(
        new InvalidInputError(`the inspector's port ${port} ${why}; leave it out for any that is free`, { cause }),
      );
    });
    server.listen(port, "127.0.0.1", resolve);
  });
  return (server.address() as AddressInfo).port;
}

function visitOf(request: IncomingMessage, gate: Gate): { pathname: string; isWelcome: boolean } {
  const { host, origin } = request.headers;
  // Taken apart by hand: a request line may hold anything, and `URL` throws at some of it.
  const [pathname = ""] = (request.url ?? "").split("?", 1);
  const token = queryOf(request).get("token");
  return { pathname, isWelcome: isAdmitted({ host, origin, token }, gate) };
}

function queryOf(request: IncomingMessage): URLSearchParams {
  return new URLSearchParams((request.url ?? "").split("?", 2)[1] ?? "");
}

function answer(request: IncomingMessage, response: ServerResponse, gate: Gate): void {
  response.setHeader("cache-control", "no-store");
  response.setHeader("x-content-type-options", "nosniff");
  response.setHeader("referrer-policy", "no-referrer");
  const { pathname, isWelcome } = visitOf(request, gate);
  if (!isWelcome) return end(response, 403);
  if (request.method !== "GET") return end(response, 405);
  // Admitted, so it is one of our own two names.
  const host = request.headers.host ?? "";
  if (pathname === "/") return show(response, treePage(host));
  if (pathname === "/stately" && gate.allowStately) return show(response, statelyPage(host));
  end(response, 404);
}

function show(response: ServerResponse, { html, policy }: Page): void {
  response.setHeader("content-type", "text/html; charset=utf-8");
  response.setHeader("content-security-policy", policy);
  response.end(html);
}

function end(response: ServerResponse, status: number): void {
  response.statusCode = status;
  response.setHeader("content-length", 0);
  response.end();
}

function refuse(socket: Duplex, status: string): void {
  socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
}

interface Gate {
  readonly port: number;
  readonly token: string;
  readonly allowStately: boolean;
}

/** The headers and the token that say where a request comes from. */
interface Visitor {
  readonly host: string | undefined;
  readonly origin: string | undefined;
  readonly token: string | null;
}

/**
 * True if a request is admitted. A page of another site can make a browser send requests to this machine:
 * either its name resolves to 127.0.0.1 (then the Host is foreign), or it requests the address itself (then the Origin is).
 * Programs other than browsers send no Origin. All of them need the token.
 */
function isAdmitted({ host, origin, token }: Visitor, { port, token: right, allowStately }: Gate): boolean {
  const hosts = [`127.0.0.1:${port}`, `localhost:${port}`];
  if (host === undefined || !hosts.includes(host)) return false;
  const origins = [...hosts.map((own) => `http://${own}`), ...(allowStately ? [STATELY_ORIGIN] : [])];
  if (origin !== undefined && !origins.includes(origin)) return false;
  return token !== null && timingSafeEqual(digestOf(token), digestOf(right));
}

function digestOf(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
