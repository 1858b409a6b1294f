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
import { isLoopbackName } from "../net/index.ts";
import { type Authenticate, isOpenAuth } from "./core/identity.ts";
import type { ServeOptions } from "./serve-options.ts";

/** Options of `server.listen()`. */
export interface ListenOptions {
  /** Port to listen on. Default 0: any free port. */
  readonly port?: number | undefined;
  /** Host name or address to bind. Default `127.0.0.1`. */
  readonly host?: string | undefined;
  /** Timeout for the head of a request, in milliseconds. Default 10,000. */
  readonly headMs?: number | undefined;
  /** Timeout for a whole request, in milliseconds. Default 30,000. */
  readonly requestMs?: number | undefined;
  /**
   * Handlers for further URLs of the port, with their own access rules. Close them before the server. Default: none.
   */
  readonly mounted?: MountedHandlers | undefined;
}

/** Handlers of `node:http` next to a server's own; `inspectorRoutes()` of `troupe/inspector` creates them. */
export interface MountedHandlers {
  /** Whether these handlers answer a URL. */
  owns(url: string | undefined): boolean;
  /** Answers requests whose URL it owns. */
  readonly handle: (request: IncomingMessage, response: ServerResponse) => void;
  /** Receives every upgrade request. */
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
    mounted: portRule("handlers, such as the result of inspectorRoutes()", ["owns", "handle", "upgrade"]),
  },
};

/**
 * On Node `@hono/node-server` replaces the global `Response` with a faster one. Servers of Bun and Deno refuse to send it, and a program
 * may have one beside this server.
 */
const overrideGlobalObjects = !("Bun" in globalThis) && !("Deno" in globalThis);

/** An open port. */
export interface Listening {
  /** The bound address. */
  readonly host: string;
  /** The bound port. */
  readonly port: number;
  /** Its base URL: `http://127.0.0.1:8080`. */
  readonly url: string;
  /** Accepts no further connections, waits at most `timeoutMs` for open requests, and then closes their connections. */
  close(timeoutMs: number, clock: Clock): Promise<void>;
}

/**
 * The handler of a server as a listener of `node:http`, Express and Fastify. Mount it before any body parser, because
 * it reads the body itself.
 */
export function nodeListener({
  fetch,
}: {
  readonly fetch: (request: Request, env?: unknown) => Promise<Response>;
}): (request: IncomingMessage, response: ServerResponse) => Promise<void> {
  let listener: Promise<(request: IncomingMessage, response: ServerResponse) => unknown> | undefined;
  return async (request, response) => {
    listener ??= import("@hono/node-server").then(({ getRequestListener }) =>
      getRequestListener(fetch, { overrideGlobalObjects }),
    );
    await (await listener)(request, response);
  };
}

/** Serves a fetch handler with Node's HTTP server. Rejects with `InvalidInputError` if the port is unavailable. */
export async function listenOn(
  fetch: (request: Request, env: unknown) => Promise<Response>,
  { port = 0, host = "127.0.0.1", headMs = DEFAULT_HEAD_MS, requestMs = DEFAULT_REQUEST_MS, mounted }: ListenOptions,
): Promise<Listening> {
  const { getRequestListener } = await import("@hono/node-server");
  const headersTimeout = Math.min(headMs, requestMs);
  const serverOptions: ServerOptions = {
    headersTimeout,
    requestTimeout: requestMs,
    // By default Node checks for late clients only every 30 s.
    connectionsCheckingInterval: Math.min(LONGEST_CHECK_MS, Math.ceil(headersTimeout / 2)),
    maxHeaderSize: 16_384,
    keepAliveTimeout: 5_000,
  };
  const listener = getRequestListener(fetch, { hostname: host, overrideGlobalObjects });
  const server = createHttpServer(serverOptions, (request, response) => {
    if (mounted?.owns(request.url) === true) mounted.handle(request, response);
    else void listener(request, response);
  });
  if (mounted) server.on("upgrade", mounted.upgrade);
  let isClosing = false;
  server.on("request", (_, response) => {
    // A connection becomes idle only after its last answer has ended.
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
 * Rejects with `InvalidInputError` if `serveRuntime(…, { authenticate }).listen({ port, host })` would reject now. Lets
 * a program check before it opens stores and creates a runtime.
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

/** Throws `InvalidInputError` for a server without tokens that listens for other machines. */
export function assertOpenToLoopback(authenticate: Authenticate, host: string): void {
  if (!isOpenAuth(authenticate) || isLoopbackName(host)) return;
  throw new InvalidInputError(`openAuth() requires no token, so the server listens only on loopback, not on ${host}`);
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
