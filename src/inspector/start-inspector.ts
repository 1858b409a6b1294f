import { type IncomingMessage, type ServerResponse, createServer, type Server } from "node:http";
import type { Duplex } from "node:stream";
import { flagRule, optionsOf, portRule, ruleOf, textRule, wholeNumberRule } from "../base/index.ts";
import type { Runtime } from "../runtime/index.ts";
import { runtimeActor } from "./feed/act.ts";
import { Feed } from "./feed/feed.ts";
import { isPageToken, isSame, newToken, type Tokens } from "./http/gate.ts";
import { InspectorRoutes } from "./http/inspector-routes.ts";
import { createInspector, type Inspector, type InspectorOptions, inspectorRules } from "./stately/hub.ts";
import { type StatelyOptions, StatelyRoutes } from "./stately/stately-routes.ts";
import type { StoredTrees } from "./stately/stored-frames.ts";
import type { AddressInfo } from "node:net";
import { InvalidInputError } from "../errors/index.ts";

/** Options of `serveInspector()`. */
export interface InspectorServerOptions {
  /** Default 0: any free port. The server always binds to 127.0.0.1. */
  readonly port?: number | undefined;
  /** Allow the page https://stately.ai/inspect, which is loaded from that site and needs the token too. Default false. */
  readonly allowStately?: boolean | undefined;
  /** Bytes buffered for a slow client of the frames before it is disconnected. Default 32,000,000. */
  readonly mostWaitingBytes?: number | undefined;
}

/** Options of `serveFeed()`. */
export interface FeedServerOptions {
  /** Default 0: any free port. The server always binds to 127.0.0.1. */
  readonly port?: number | undefined;
  /** Whether the address may decide, pause and talk. Default false. */
  readonly mayAct?: boolean | undefined;
}

/** A feed and its page, served on this machine only. */
export interface FeedServer {
  /** The server's address: `http://127.0.0.1:<port>`. */
  readonly origin: string;
  /** The page. Its fragment contains the token that allows most. Print it once and treat it as a password. */
  readonly url: string;
  /** The page with the read-only token. */
  readonly watchUrl: string;
  /** The tokens of this server. */
  readonly tokens: Tokens;
  /** Ends all connections and stops listening. */
  close(): Promise<void>;
}

/** A server for a feed and for the frames of Stately's protocol. */
export interface InspectorServer extends FeedServer {
  /** Address of Stately's page; `undefined` unless it was allowed. */
  readonly statelyUrl: string | undefined;
  /** WebSocket address of the frames of Stately's protocol, for programs. */
  readonly socketUrl: string;
}

/** Options of `startInspector()`. */
export interface StartInspectorOptions extends InspectorServerOptions, InspectorOptions {
  /** Whether the address may decide requests, pause, abort and talk to agents. Default false: read-only. */
  readonly decide?: boolean | undefined;
  /** Show only names, ids and numbers: nothing that a person, a model or a tool wrote. Default false. */
  readonly namesOnly?: boolean | undefined;
  /** Name that is recorded for decisions, pauses and aborts from the page. Default `inspector`. */
  readonly by?: string | undefined;
  /** The run that the page opens first. Default: the list of runs. */
  readonly run?: string | undefined;
}

/** A page and its server, as returned by `startInspector()`. */
export interface StartedInspector extends InspectorServer {
  /** Shows the runs and machines of a runtime, also existing ones. The returned function stops it. */
  watch(runtime: Runtime): () => void;
}

const serverRules = {
  port: wholeNumberRule(0, 65_535),
  allowStately: flagRule,
  mostWaitingBytes: wholeNumberRule(1),
} as const;
const instead = { stately: "allowStately", host: "nothing: it is bound to 127.0.0.1" } as const;

/** Serves a feed and its page. Throws `InvalidInputError` for a port that is taken. */
export async function serveFeed(feed: Feed, options: FeedServerOptions = {}): Promise<FeedServer> {
  return await serve(feed, options, undefined);
}

/** Serves the frames of an inspector. Throws `InvalidInputError` if the port is taken or is not a port number. */
export async function serveInspector(inspector: Inspector, given?: InspectorServerOptions): Promise<InspectorServer> {
  portRule("an inspector, as createInspector() makes it", ["frames", "subscribe"])(inspector, "serveInspector()");
  const options = optionsOf<InspectorServerOptions>(given, "serveInspector()", { rules: serverRules, instead });
  return await serve(new Feed(), options, { inspector, trees: [] });
}

/**
 * Creates an inspector and serves it; pass the runtime to `watch`. Throws `InvalidInputError` if the port is taken or is
 * not a port number.
 */
export async function startInspector(given?: StartInspectorOptions): Promise<StartedInspector> {
  const own = { decide: flagRule, namesOnly: flagRule, by: textRule, run: textRule } as const;
  const rules = { ...serverRules, ...inspectorRules, ...own };
  const options = optionsOf<StartInspectorOptions>(given, "startInspector()", { rules, instead });
  const { now, keptEnded, decide = false, namesOnly, by = "inspector", run, ...serving } = options;
  const inspector = createInspector({ now, keptEnded });
  const feed = new Feed({ namesOnly, run });
  const trees = new Set<StoredTrees>();
  const server = await serve(feed, { ...serving, mayAct: decide }, { inspector, trees });
  return {
    ...server,
    statelyUrl: server.statelyUrl && atRun(server.statelyUrl, run),
    watch(runtime) {
      const remove = addRuntime(feed, runtime, decide ? by : undefined);
      const endInspection = runtime.inspect(inspector.onInspect);
      trees.add(runtime);
      return () => {
        endInspection();
        trees.delete(runtime);
        remove();
      };
    },
  };
}

function atRun(statelyUrl: string, run: string | undefined): string {
  return run === undefined ? statelyUrl : `${statelyUrl}&run=${encodeURIComponent(run)}`;
}

/** Options of `inspectorRoutes()`. */
export interface InspectorRoutesOptions extends Pick<StartInspectorOptions, "decide" | "namesOnly" | "by"> {
  /** Allowed values of `Host`, with the port: your server's names. Pass a function if they are known only later. */
  readonly hosts: readonly string[] | (() => readonly string[]);
  /** Path prefix of all addresses, such as `/inspector`. Default: none, the page is at `/`. */
  readonly basePath?: string | undefined;
  /** The token that allows most, of letters, digits, `-` and `_`. Default: a new one. */
  readonly token?: string | undefined;
  /** Path of your server's API documentation, to which the page links. Default: none. */
  readonly apiDocs?: string | undefined;
}

const routeRules = {
  decide: flagRule,
  namesOnly: flagRule,
  by: textRule,
  hosts: ruleOf(
    "a list of hosts, or a function that returns one",
    (value) => typeof value === "function" || (Array.isArray(value) && value.every((one) => typeof one === "string")),
  ),
  basePath: ruleOf(
    'a path like "/inspector", without a trailing slash',
    (value) => typeof value === "string" && /^(?:\/[\w.~-]+)+$/.test(value),
  ),
  token: ruleOf("a text of at least 16 letters, digits, - and _", isPageToken),
  apiDocs: textRule,
} as const;

/** The page and the feed of a runtime, for your own `node:http` server. */
export interface MountedInspector {
  /** The tokens that open it. */
  readonly tokens: Tokens;
  /** Whether an address belongs to the inspector: `/`, `/assets/…`, `/api/…` and `/feed`, below `basePath`. */
  owns(url: string | undefined): boolean;
  /** Listener for the server's `request` event. */
  readonly handle: (request: IncomingMessage, response: ServerResponse) => void;
  /** Listener for the server's `upgrade` event. */
  readonly upgrade: (request: IncomingMessage, socket: Duplex, head: Buffer) => void;
  /** Ends the connections of all readers; your own server keeps running. */
  close(): void;
}

/** Shows a runtime on your own server. The feed's addresses need a token; the page itself needs only an allowed `Host`. */
export function inspectorRoutes(runtime: Runtime, given: InspectorRoutesOptions): MountedInspector {
  const options = optionsOf<InspectorRoutesOptions>(given, "inspectorRoutes()", {
    rules: routeRules,
    needed: ["hosts"],
  });
  const { hosts, decide = false, namesOnly, by = "inspector", basePath, token = newToken(), apiDocs } = options;
  const feed = new Feed({ namesOnly, apiDocs });
  addRuntime(feed, runtime, decide ? by : undefined);
  const tokens: Tokens = decide ? { watch: newToken(), act: token } : { watch: token };
  const names = (): readonly string[] =>
    (typeof hosts === "function" ? hosts() : hosts).map((one) => one.toLowerCase());
  const routes = new InspectorRoutes({ feed, tokens, hosts: names, basePath });
  return {
    tokens,
    owns: (url) => routes.owns(url),
    handle: routes.handle,
    upgrade: routes.upgrade,
    close() {
      routes.close();
      feed.close();
    },
  };
}

/** `by` is the name recorded for actions from the page; `undefined` if the page is read-only. */
function addRuntime(feed: Feed, runtime: Runtime, by: string | undefined): () => void {
  const { stores, tenant, queues } = runtime;
  const actor = by === undefined ? undefined : runtimeActor(runtime, by);
  return feed.add({ stores, tenant, runtime, actor, ...(queues.kind === "local" ? {} : { queues }) });
}

function tokensFor(mayAct: boolean): Tokens {
  return { watch: newToken(), act: mayAct ? newToken() : undefined };
}

async function serve(
  feed: Feed,
  options: InspectorServerOptions & FeedServerOptions,
  frames: Pick<StatelyOptions, "inspector" | "trees"> | undefined,
): Promise<InspectorServer> {
  const { allowStately = false, mostWaitingBytes = 32_000_000 } = options;
  const tokens = tokensFor(options.mayAct === true);
  const framesToken = newToken();
  const { server, port } = await listenHere(options.port ?? 0);
  const hosts = [`127.0.0.1:${port}`, `localhost:${port}`];
  const routes = new InspectorRoutes({ feed, tokens, hosts: () => hosts });
  const isToken = (token: string): boolean => isSame(token, framesToken);
  const stately = frames && new StatelyRoutes({ ...frames, hosts, isToken, allowStately, mostWaitingBytes });
  server.on("request", (request, response) => {
    const path = pathOf(request);
    if (stately?.owns(path) === true) stately.handle(request, response, path);
    else routes.handle(request, response);
  });
  server.on("upgrade", (request: IncomingMessage, socket, head: Buffer) => {
    const path = pathOf(request);
    socket.on("error", () => socket.destroy());
    if (stately?.owns(path) === true) stately.upgrade(request, socket, head, path);
    else routes.upgrade(request, socket, head);
  });
  const origin = `http://127.0.0.1:${port}`;
  return {
    origin,
    url: `${origin}/#token=${tokens.act ?? tokens.watch}`,
    watchUrl: `${origin}/#token=${tokens.watch}`,
    statelyUrl: allowStately ? `${origin}/stately?token=${framesToken}` : undefined,
    socketUrl: `ws://127.0.0.1:${port}/frames?token=${framesToken}`,
    tokens,
    async close() {
      stately?.close();
      routes.close();
      feed.close();
      await closeServer(server);
    },
  };
}

function pathOf({ url }: IncomingMessage): string {
  return (url ?? "").split("?", 1)[0] ?? "";
}

/** A connection without traffic for this many milliseconds is closed. */
const IDLE_MS = 60_000;
const MOST_CONNECTIONS = 64;

/** A server that listens only on the loopback address and does not keep the process alive. */
export async function listenHere(port: number): Promise<{ readonly server: Server; readonly port: number }> {
  const server = createServer({ maxHeaderSize: 8_192, headersTimeout: 5_000, requestTimeout: 30_000 });
  server.maxConnections = MOST_CONNECTIONS;
  server.setTimeout(IDLE_MS, (socket) => socket.destroy());
  // Longer than the default of 5 s, after which a busy process would close connections that have just received a request.
  server.keepAliveTimeout = IDLE_MS;
  await new Promise<void>((resolve, reject) => {
    server.once("error", (cause: NodeJS.ErrnoException) => {
      const why = cause.code === "EADDRINUSE" ? "is taken" : `cannot be used (${cause.code ?? cause.message})`;
      reject(
        new InvalidInputError(`the inspector's port ${port} ${why}; leave it out to use any free port`, { cause }),
      );
    });
    server.listen(port, "127.0.0.1", resolve);
  });
  server.unref();
  server.on("connection", (socket) => socket.unref());
  return { server, port: (server.address() as AddressInfo).port };
}

/** Ends all connections and the server. */
export async function closeServer(server: Server): Promise<void> {
  server.closeAllConnections();
  await new Promise<void>((resolve) => void server.close(() => resolve()));
}
