import {
  createServer as createHttpServer,
  type IncomingMessage,
  type ServerOptions,
  type ServerResponse,
} from "node:http";
import { type AddressInfo, createServer, type Server as NetServer } from "node:net";
import type { Duplex } from "node:stream";
import { type Clock, type OptionsSchema, nameRule, portRule, wholeNumberRule } from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import { type Authenticate, isOpenAuth } from "./core/identity.ts";
import { isLoopbackName } from "./core/origins.ts";
import type { ServeOptions } from "./serve-options.ts";

/** What `server.listen()` takes. */
export interface ListenOptions {
  /** Default 0: any that is free. */
  readonly port?: number | undefined;
  /** Default `127.0.0.1`. */
  readonly host?: string | undefined;
  /** Longest time that the head of a request may take to arrive, in milliseconds. Default 10,000. */
  readonly headMs?: number | undefined;
  /** Longest time that a whole request may take to arrive, in milliseconds. Default 30,000. */
  readonly requestMs?: number | undefined;
  /**
   * Answers some addresses of the port itself, with rules of its own on who may ask. Close it before the server.
   * Default: none.
   */
  readonly mounted?: MountedHandlers | undefined;
}

/** Handlers of `node:http` beside a server's own, as `inspectorRoutes()` of `troupe/inspector` makes them. */
export interface MountedHandlers {
  /** Whether an address belongs to these handlers. */
  owns(url: string | undefined): boolean;
  /** Answers requests whose address it owns. */
  readonly handle: (request: IncomingMessage, response: ServerResponse) => void;
  /** Gets every request to change the protocol. */
  readonly upgrade: (request: IncomingMessage, socket: Duplex, head: Buffer) => void;
}

const DEFAULT_HEAD_MS = 10_000;
const DEFAULT_REQUEST_MS = 30_000;
const LONGEST_CHECK_MS = 1_000;

export const listenOptionsSchema: OptionsSchema<ListenOptions> = {
  rules: {
    port: wholeNumberRule(0, 65_535),
    host: nameRule,
    headMs: wholeNumberRule(1, 2 ** 31 - 1),
    requestMs: wholeNumberRule(1, 2 ** 31 - 1),
    mounted: portRule("handlers, as inspectorRoutes() makes them", ["owns", "handle", "upgrade"]),
  },
};

/** An open port. */
export interface Listening {
  /** The address that it is bound to. */
  readonly host: string;
  /** The port that it listens on. */
  readonly port: number;
  /** Where it can be reached: `http://127.0.0.1:8080`. */
  readonly url: string;
  /** Takes no connection any more, waits for open requests for at most `timeoutMs`, and then cuts them off. */
  close(timeoutMs: number, clock: Clock): Promise<void>;
}

/**
 * The handler of a server as a listener of `node:http`, Express and Fastify. It reads the body itself, so it goes before
 * any body parser.
 */
export function nodeListener({
  fetch,
}: {
  readonly fetch: (request: Request, env?: unknown) => Promise<Response>;
}): (request: IncomingMessage, response: ServerResponse) => Promise<void> {
  let listener: Promise<(request: IncomingMessage, response: ServerResponse) => unknown> | undefined;
  return async (request, response) => {
    listener ??= import("@hono/node-server").then(({ getRequestListener }) => getRequestListener(fetch));
    await (await listener)(request, response);
  };
}

/** Serves a fetch handler with the HTTP server of Node. Rejects with `InvalidInputError` when the port cannot be had. */
export async function listenOn(
  fetch: (request: Request, env: unknown) => Promise<Response>,
  { port = 0, host = "127.0.0.1", headMs = DEFAULT_HEAD_MS, requestMs = DEFAULT_REQUEST_MS, mounted }: ListenOptions,
): Promise<Listening> {
  const { getRequestListener } = await import("@hono/node-server");
  const headersTimeout = Math.min(headMs, requestMs);
  const serverOptions: ServerOptions = {
    headersTimeout,
    requestTimeout: requestMs,
    // By default Node looks for clients that are late only each 30 s.
    connectionsCheckingInterval: Math.min(LONGEST_CHECK_MS, Math.ceil(headersTimeout / 2)),
    maxHeaderSize: 16_384,
    keepAliveTimeout: 5_000,
  };
  const listener = getRequestListener(fetch, { hostname: host });
  const server = createHttpServer(serverOptions, (request, response) => {
    if (mounted?.owns(request.url) === true) mounted.handle(request, response);
    else void listener(request, response);
  });
  if (mounted) server.on("upgrade", mounted.upgrade);
  let isClosing = false;
  server.on("request", (_, response) => {
    // A connection whose last answer ended is idle a moment later.
    response.once("close", () => isClosing && setImmediate(() => server.closeIdleConnections()));
  });
  await bound(server, port, host);
  const address = server.address() as AddressInfo;
  const shownHost = host.includes(":") ? `[${host}]` : host;
  return {
    host,
    port: address.port,
    url: `http://${shownHost}:${address.port}`,
    async close(timeoutMs, clock) {
      isClosing = true;
      const closed = new Promise<void>((resolve) => void server.close(() => resolve()));
      server.closeIdleConnections();
      const cancel = clock.setDelay(timeoutMs, () => server.closeAllConnections());
      await closed;
      cancel();
    },
  };
}

/**
 * Rejects with `InvalidInputError` when `serveRuntime(…, { authenticate }).listen({ port, host })` would now: for a program
 * that wants to know before it opens stores and makes a runtime.
 */
export async function assertCanListen({
  authenticate,
  port = 0,
  host = "127.0.0.1",
}: ListenOptions & Pick<ServeOptions, "authenticate">): Promise<void> {
  assertOpenToLoopback(authenticate, host);
  const probe = createServer();
  await bound(probe, port, host);
  await new Promise<void>((resolve) => void probe.close(() => resolve()));
}

/** Throws `InvalidInputError` for a server that asks for no token and listens for other machines. */
export function assertOpenToLoopback(authenticate: Authenticate, host: string): void {
  if (!isOpenAuth(authenticate) || isLoopbackName(host)) return;
  throw new InvalidInputError(`openAuth() asks for no token, so the server listens on loopback only, not on ${host}`);
}

async function bound(server: NetServer, port: number, host: string): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", (cause: NodeJS.ErrnoException) => {
      const why = cause.code === "EADDRINUSE" ? "is taken" : `cannot be used (${cause.code ?? cause.message})`;
      reject(new InvalidInputError(`port ${port} of ${host} ${why}`, { cause }));
    });
    server.listen(port, host, resolve);
  });
}
