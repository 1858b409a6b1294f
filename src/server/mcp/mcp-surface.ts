import { z } from "zod";
import { listRule, type OptionsSchema, optionsOf, ruleOf } from "../../base/index.ts";
import { InvariantError } from "../../errors/index.ts";
import { type Failure, ServerError } from "../core/failures.ts";
import { hostOf } from "../core/origins.ts";
import { type Call, type Route, route } from "../core/route.ts";
import type { Surface } from "../core/surface.ts";
import type { CallSide } from "./agent-calls.ts";
import { LegacySessions } from "./legacy-sessions.ts";
import { protocolServer } from "./protocol-server.ts";
import { loadServerSdk } from "./sdk.ts";
import { ServedTools } from "./served-tools.ts";
import { type McpToolsOptions, toolsOptionsRules } from "./tools-options.ts";

/** Options of `mcpSurface()`. */
export interface McpSurfaceOptions extends McpToolsOptions {
  /** Path of the endpoint. Default `/mcp`. */
  readonly path?: string | undefined;
  /**
   * The server's address for its clients, as `https://agents.example.com`, for the metadata of `authorizationServers`.
   * Default: the address of the request.
   */
  readonly publicUrl?: string | undefined;
  /**
   * Issuers of the tokens that `authenticate` accepts, as URLs. Clients find them by the metadata of the endpoint (RFC
   * 9728). Default: none, clients are configured with a token.
   */
  readonly authorizationServers?: readonly string[] | undefined;
}

const METADATA = "/.well-known/oauth-protected-resource";

const pathRule = ruleOf(
  'a path like "/mcp", without a trailing slash',
  (value) => typeof value === "string" && /^(?:\/[\w.~-]+)+$/.test(value),
);

const urlRule = ruleOf(
  'a URL like "https://login.example.com"',
  (value) => typeof value === "string" && /^https?:\/\//i.test(value) && URL.canParse(value),
);

export const surfaceOptionsRules: OptionsSchema<McpSurfaceOptions>["rules"] = {
  ...toolsOptionsRules,
  path: pathRule,
  publicUrl: urlRule,
  authorizationServers: listRule("a list of URLs", urlRule),
};

export const surfaceOptionsInstead = {
  secret: "stateKey",
  key: "stateKey",
  timeout: "waitMs",
  timeoutMs: "waitMs",
  tools: "agents",
  definitions: "agents",
} as const;

/**
 * Agents as tools of an MCP server over Streamable HTTP, for clients of both eras of the protocol. Rejects with
 * `UnsupportedError` if the package `@modelcontextprotocol/server` is not installed, and with `InvalidInputError` for
 * invalid options.
 */
export async function mcpSurface(given: McpSurfaceOptions = {}): Promise<Surface> {
  const options = optionsOf<McpSurfaceOptions>(given, "mcpSurface()", {
    rules: surfaceOptionsRules,
    instead: surfaceOptionsInstead,
  });
  const tools = new ServedTools(await loadServerSdk(), options);
  const { path = "/mcp", publicUrl, authorizationServers = [] } = options;
  const endpoint = new McpEndpoint(tools);
  const metadataPath = `${METADATA}${path}`;
  const base = publicUrl?.replace(/\/+$/, "");
  return {
    name: "mcp",
    paths: [path, METADATA],
    headers: ["mcp-session-id", "mcp-protocol-version", "mcp-method", "mcp-name"],
    routes: [
      ...endpointRoutes(endpoint, path),
      ...(authorizationServers.length === 0
        ? []
        : [metadataRoute(metadataPath, { path, base, servers: authorizationServers })]),
    ],
    failure: (failure, request) => {
      const response = rpcFailure(failure);
      if (failure.status !== 401 || authorizationServers.length === 0) return response;
      const origin = base ?? `${new URL(request.url).protocol}//${hostOf(request)}`;
      const challenge = failure.headers["www-authenticate"] ?? "Bearer";
      const separator = challenge.includes("=") ? ", " : " ";
      response.headers.set("www-authenticate", `${challenge}${separator}resource_metadata="${origin}${metadataPath}"`);
      return response;
    },
  };
}

/** The endpoint of a surface: stateless, except for clients of the legacy era that can be asked questions. */
class McpEndpoint {
  readonly #tools: ServedTools;
  readonly #sessions: LegacySessions;
  /** The calls of sessions by their HTTP request: a session has many. */
  readonly #calls = new WeakMap<Request, Call>();

  constructor(tools: ServedTools) {
    this.#tools = tools;
    this.#sessions = new LegacySessions(tools.sdk, async (transport, { caller }) => {
      const sideOf = ({ http }: { readonly http?: { readonly req?: Request } }): CallSide => {
        const call = http?.req && this.#calls.get(http.req);
        if (call === undefined) throw new InvariantError("a call of a session has no HTTP request");
        return sideOfCall(call, false);
      };
      await protocolServer(caller, sideOf, tools.settings(caller.runtime)).connect(transport);
    });
  }

  async post(call: Call): Promise<Response> {
    if (call.body === undefined)
      throw new ServerError("invalid_request", "the body is missing: POST a JSON-RPC message");
    const id = call.request.headers.get("mcp-session-id");
    this.#calls.set(call.request, call);
    if (id !== null) return await call.relay(() => this.#sessions.answer(id, call));
    if (this.#sessions.opensSession(call.body)) return await call.relay(() => this.#sessions.open(call));
    return await call.relay(() => this.#stateless(call));
  }

  async delete(call: Call): Promise<Response> {
    const id = call.request.headers.get("mcp-session-id");
    if (id === null) throw new ServerError("invalid_request", "the header Mcp-Session-Id is missing");
    return await call.relay(() => this.#sessions.answer(id, call));
  }

  async #stateless(call: Call): Promise<Response> {
    const { caller } = call;
    const settings = this.#tools.settings(caller.runtime);
    const handler = this.#tools.sdk.server.createMcpHandler(({ era }) =>
      protocolServer(caller, () => sideOfCall(call, era === "modern"), settings),
    );
    return await handler.fetch(isSubscription(call.body) ? untilClosing(call) : call.request, {
      parsedBody: call.body,
    });
  }
}

/** A stream of changes. The tools of a server never change, so it stays silent. */
function isSubscription(body: unknown): boolean {
  return typeof body === "object" && body !== null && Reflect.get(body, "method") === "subscriptions/listen";
}

/** The request, without its body, for an answer that also ends when the server closes. */
function untilClosing({ request: { url, method, headers }, signal }: Call): Request {
  return new Request(url, { method, headers, signal });
}

function sideOfCall(call: Call, lossCancels: boolean): CallSide {
  const { caller, clock } = call;
  return { caller, clock, lossCancels, within: (work, ms) => call.within(work, ms) };
}

function endpointRoutes(endpoint: McpEndpoint, path: string): readonly Route[] {
  const shape = { path, access: "caller" } as const;
  return [
    route({
      ...shape,
      id: "mcp",
      method: "POST",
      summary: "Messages of MCP",
      body: z.unknown(),
      responses: { 200: { description: "The answer, as JSON or as a stream of events." } },
      handle: async (call) => await endpoint.post(call),
    }),
    route({
      ...shape,
      id: "endSession",
      method: "DELETE",
      summary: "Ends a session",
      responses: { 200: { description: "The session has ended." } },
      handle: async (call) => await endpoint.delete(call),
    }),
  ];
}

interface Metadata {
  readonly path: string;
  readonly base: string | undefined;
  readonly servers: readonly string[];
}

function metadataRoute(metadataPath: string, { path, base, servers }: Metadata): Route {
  return route({
    id: "protectedResource",
    method: "GET",
    path: metadataPath,
    access: "public",
    summary: "The issuers of tokens for the endpoint",
    responses: { 200: { description: "The metadata." } },
    handle: ({ origin }) =>
      Response.json({
        resource: `${base ?? origin}${path}`,
        authorization_servers: servers,
        bearer_methods_supported: ["header"],
      }),
  });
}

const codes: Readonly<Record<number, number>> = { 400: -32_600, 413: -32_600, 415: -32_600 };

/** The answer to an error before the protocol's server reads the message. */
function rpcFailure({ status, code, message, headers }: Failure): Response {
  const isUnparsed = code === "invalid_input";
  const rpcCode = isUnparsed ? -32_700 : (codes[status] ?? -32_000);
  return Response.json(
    { jsonrpc: "2.0", id: null, error: { code: rpcCode, message, data: { code } } },
    { status, headers },
  );
}
