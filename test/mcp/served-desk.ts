import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { getRequestListener } from "@hono/node-server";
import {
  createMcpHandler,
  type JSONRPCMessage,
  type McpServer,
  type Server,
  type Transport,
  WebStandardStreamableHTTPServerTransport,
} from "@modelcontextprotocol/server";
import { createRuntime, defineAgent, type Agent, type Runtime, type RuntimeOptions, type Tool } from "troupe";
import { mcp, type McpOptions, type McpTools } from "troupe/mcp";
import { memoryStores } from "troupe/stores/memory";
import { scriptedModel } from "troupe/testing";
import { onTestFinished } from "vitest";
import type { Stores } from "../../src/stores/index.ts";
import { askingServer } from "./asking-server.ts";
import { deskServer } from "./desk-server.ts";
import { faultServer } from "./fault-server.ts";

export type Era = "legacy" | "modern";
/** Ways to the same server. */
export const ways = ["stdio legacy", "stdio modern", "http legacy", "http modern", "sse"] as const;
export type Way = (typeof ways)[number];

export interface ServedDesk {
  readonly options: Pick<McpOptions, "command" | "args" | "url">;
  /** The effects so far. */
  readonly effects: () => string[];
  /** Stops the HTTP server. */
  readonly stop: () => Promise<void>;
  /** Stops the HTTP server and opens another on the same port. */
  readonly restart: () => Promise<void>;
}

/** The servers of these tests. */
const servers = {
  desk: (_era: Era, witness: string) => deskServer(witness),
  faults: (_era: Era, witness: string) => faultServer(witness),
  inn: askingServer,
} as const;
type Kind = keyof typeof servers;

export async function openDesk(way: Way, kind: Kind = "desk"): Promise<ServedDesk> {
  const folder = mkdtempSync(join(tmpdir(), "troupe-mcp-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const witness = join(folder, "effects");
  const effects = (): string[] => {
    try {
      return readFileSync(witness, "utf8").trim().split("\n");
    } catch {
      return [];
    }
  };
  if (way.startsWith("stdio")) {
    const era = way.endsWith("legacy") ? "legacy" : "modern";
    const args = [join(import.meta.dirname, "stdio-server.ts"), era, witness, kind];
    return { options: { command: process.execPath, args }, effects, stop: nothing, restart: nothing };
  }
  const opened = { "http modern": modernHandler, "http legacy": legacyHandler, sse: sseHandler } as const;
  const era = way === "http modern" ? "modern" : "legacy";
  const handlerOf = (file: string): Handler => opened[way as keyof typeof opened](() => servers[kind](era, file));
  const served = await serve(handlerOf(witness));
  return {
    options: { url: `${served.url}/mcp` },
    effects,
    stop: served.close,
    restart: async () => {
      await served.close();
      await served.listen(handlerOf(witness));
    },
  };
}

const nothing = async (): Promise<void> => undefined;

export type Handler = (request: Request) => Promise<Response>;

export async function serve(first: Handler): Promise<{
  readonly url: string;
  readonly close: () => Promise<void>;
  readonly listen: (handler: Handler) => Promise<void>;
}> {
  let server = createServer();
  let port = 0;
  const close = async (): Promise<void> => {
    const { promise, resolve } = Promise.withResolvers<void>();
    server.close(() => resolve());
    server.closeAllConnections();
    await promise;
  };
  const listen = async (handler: Handler): Promise<void> => {
    const listener = getRequestListener(handler);
    server = createServer((request, response) => void listener(request, response));
    const { promise, resolve } = Promise.withResolvers<void>();
    server.listen(port, "127.0.0.1", () => resolve());
    await promise;
    port = (server.address() as { port: number }).port;
  };
  await listen(first);
  onTestFinished(close);
  return { url: `http://127.0.0.1:${port}`, close, listen };
}

export function modernHandler(make: () => McpServer | Server): Handler {
  const handler = createMcpHandler(make, { legacy: "reject" });
  return async (request) => await handler.fetch(request);
}

export function legacyHandler(make: () => McpServer | Server): Handler {
  const sessions = new Map<string, WebStandardStreamableHTTPServerTransport>();
  return async (request) => {
    const id = request.headers.get("mcp-session-id");
    const known = id === null ? undefined : sessions.get(id);
    if (known) return await known.handleRequest(request);
    if (id !== null)
      return Response.json(
        { jsonrpc: "2.0", id: null, error: { code: -32_001, message: "no session" } },
        { status: 404 },
      );
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => crypto.randomUUID(),
      onsessioninitialized: (session) => void sessions.set(session, transport),
    });
    await make().connect(transport);
    return await transport.handleRequest(request);
  };
}

/** The transport of the protocol's first version: events of a GET, messages by POST. */
function sseHandler(make: () => McpServer | Server): Handler {
  const sessions = new Map<string, Transport>();
  return async (request) => {
    const { pathname, searchParams } = new URL(request.url);
    if (pathname === "/mcp" && request.method === "GET") {
      const id = crypto.randomUUID();
      const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
      const writer = writable.getWriter();
      const write = async (event: string, data: string): Promise<void> =>
        await writer.write(Buffer.from(`event: ${event}\ndata: ${data}\n\n`));
      const transport: Transport = {
        start: async () => undefined,
        send: async (message: JSONRPCMessage) => await write("message", JSON.stringify(message)),
        close: async () => undefined,
      };
      sessions.set(id, transport);
      await make().connect(transport);
      void write("endpoint", `/messages?id=${id}`);
      return new Response(readable, { headers: { "content-type": "text/event-stream" } });
    }
    const transport = sessions.get(searchParams.get("id") ?? "");
    if (request.method !== "POST" || transport === undefined) return new Response("no such thing", { status: 405 });
    transport.onmessage?.((await request.json()) as JSONRPCMessage, { request });
    return new Response(null, { status: 202 });
  };
}

/** The tools of a server, closed at the end of the test. */
export async function connected(options: McpOptions): Promise<McpTools> {
  const server = await mcp(options);
  onTestFinished(() => server.close());
  return server;
}

export interface AskedTool {
  readonly name: string;
  readonly arguments?: Record<string, unknown>;
}

export interface McpCaller {
  readonly agent: Agent;
  readonly runtime: Runtime;
  readonly stores: Stores;
}

/** An agent whose model calls these tools, all at once, and then ends. */
export function callerDefinition(tools: readonly Tool<never>[], calls: readonly AskedTool[]) {
  return defineAgent({
    name: "caller",
    tools: [...tools],
    model: scriptedModel(({ messages }) =>
      messages.at(-1)?.role === "user"
        ? { toolCalls: calls.map((call) => ({ arguments: {}, ...call })) }
        : "The work is done.",
    ),
  });
}

/** Such an agent in a runtime of its own. */
export async function callerOf(
  tools: readonly Tool<never>[],
  calls: readonly AskedTool[],
  options: Partial<RuntimeOptions> = {},
): Promise<McpCaller> {
  const stores = memoryStores();
  const caller = callerDefinition(tools, calls);
  const runtime = await createRuntime({ agents: [caller], stores, ...options });
  onTestFinished(() => runtime.shutdown());
  const agent = await runtime.agent("caller", { agentId: "caller" });
  await agent.start();
  return { agent, runtime, stores };
}
