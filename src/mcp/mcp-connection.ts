import type {
  CallToolResult,
  Client,
  ClientCapabilities,
  InputRequests,
  InputRequiredResult,
  InputResponses,
  PriorDiscovery,
  Tool as McpTool,
  Transport,
  UrlElicitationRequiredError,
} from "@modelcontextprotocol/client";
import { abortable } from "../base/index.ts";
import { ToolNotStartedError, TroupeError } from "../errors/index.ts";
import type { Json, JsonObject } from "../state/index.ts";
import { createSlots } from "../tools/index.ts";
import type { ActorAuthorization } from "./mcp-authorization.ts";
import { McpAuthorizationError } from "./mcp-authorization-error.ts";
import type { ListedTool } from "./listed-tool.ts";
import { type CallFailure, callErrorOf, failureOf, wordsOf } from "./mcp-errors.ts";
import { McpServerError } from "./mcp-server-error.ts";
import type { McpOptions, McpOwner } from "./mcp-options.ts";
import type { McpSdk } from "./mcp-sdk.ts";
import type { McpSecrets } from "./mcp-secrets.ts";
import { httpTransport, sseTransport, stdioTransport, type TransportSource } from "./mcp-transports.ts";
import type { StartBackoff } from "./start-backoff.ts";
import { StdioTransport } from "./stdio-transport.ts";

/** One call of a tool. */
export interface McpCall {
  readonly tool: ListedTool;
  readonly args: JsonObject;
  readonly signal: AbortSignal;
  readonly onProgress: (update: Json) => void;
  /** `_meta` of the request, besides what the client adds. Default: none. */
  readonly meta?: JsonObject | undefined;
  /** HTTP headers of this request, besides those of the connection. Default: none. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Whether the server may answer with a request for input, which is then the result. Default false: that is an error. */
  readonly allowInputRequired?: boolean | undefined;
  /** Answers to the requests for input of an earlier result, and its state. Default: none. */
  readonly input?: { readonly responses: InputResponses; readonly state: string | undefined } | undefined;
  /** Called before the call is sent; until then the server cannot have run the tool. Default: none. */
  readonly onSend?: (() => void) | undefined;
  /** For handlers of the server's own requests, which read it from `McpConnection.calls`. Default: none. */
  readonly context?: unknown;
}

/** Lists whose changes servers report. */
export type ServerLists = "tools" | "prompts" | "resources";

/** Parts of the connection that other features provide. */
export interface ConnectionHooks {
  /** What the client declares to the server. Default: nothing. */
  readonly capabilities?: ClientCapabilities | undefined;
  /** What the client declares with each call of a tool to a server of the newer era, instead of `capabilities`. Default: these. */
  readonly callCapabilities?: ClientCapabilities | undefined;
  /** Called with each new client before it connects, to register handlers of the server's requests and notifications. */
  readonly prepare?: ((client: Client, connection: McpConnection) => void) | undefined;
  /** The authorization of an owner's requests. Called once for each connection. */
  readonly authorizationOf?: ((owner: McpOwner) => ActorAuthorization) | undefined;
  /** Whether calls of tools are sent one at a time over a connection, so that a request of the server belongs to the only call. */
  readonly isSerial?: ((client: Client) => boolean) | undefined;
  /** Called with the connection of a call before it is sent. A rejection means that the call is not sent. */
  readonly verify?: ((connection: OpenConnection, call: Pick<McpCall, "tool" | "signal">) => Promise<void>) | undefined;
  /** Called when a server reports that a list has changed. */
  readonly onListChanged?: ((list: ServerLists, client: Client) => void) | undefined;
}

/** What the connections to one server share. */
export interface ConnectionSource {
  readonly sdk: McpSdk;
  readonly options: McpOptions;
  readonly secrets: McpSecrets;
  readonly hooks: ConnectionHooks;
  /** What was found out about the server, for any owner. */
  readonly server: ServerTraits;
}

export interface ServerTraits {
  /** Whether the server uses a protocol of the older era: connecting needs no negotiation. */
  isLegacy: boolean;
  /** Whether the server offers only the older of both transports over HTTP. */
  isSse: boolean;
}

/** A client that is connected. */
export interface OpenConnection {
  readonly client: Client;
  readonly transport: Transport;
  /** Number of requests that use the connection. */
  uses: number;
  /** Whether the server has answered a request. */
  hasAnswered: boolean;
  /** Whether it gets no further requests; it is closed after its last one. */
  isRetired: boolean;
}

/** Longest wait for the end of a session, in milliseconds. */
const ENDING_MS = 2_000;
/** The runtime ends calls by their signal: the client's own limit, in milliseconds, must not be shorter. */
export const NO_TIMEOUT_MS = 2_147_483_647;

/**
 * The connection of one owner to one server. Invariants:
 * 1. At most one client is being connected or takes new requests.
 * 2. A lost client is replaced by a new client and a new transport, at the next request, and not before the backoff allows it.
 * 3. A client is closed only after its last request, or by `close()`.
 * 4. A call is sent once; only if the server has forgotten the session, it is sent once more in another one.
 * 5. Sessions, credentials and the negotiated protocol are of this owner alone.
 */
export class McpConnection {
  readonly owner: McpOwner;
  /** The calls of tools that have been sent and not been answered. */
  readonly calls: ReadonlySet<McpCall>;
  readonly #source: ConnectionSource;
  readonly #backoff: StartBackoff;
  readonly #calls = new Set<McpCall>();
  readonly #authorization: ActorAuthorization | undefined;
  readonly #serial = createSlots(1);
  #opening: Promise<OpenConnection> | undefined;
  readonly #open = new Set<OpenConnection>();
  /** The protocol that the server was found to use: reconnecting needs no second negotiation. */
  #prior: PriorDiscovery | undefined;
  #isClosed = false;
  /** Ends an attempt to connect. */
  readonly #closing = new AbortController();

  constructor(source: ConnectionSource, owner: McpOwner, backoff: StartBackoff) {
    this.#source = source;
    this.owner = owner;
    this.#backoff = backoff;
    this.#authorization = source.hooks.authorizationOf?.(owner);
    this.calls = this.#calls;
  }

  /**
   * Sends requests over a connected client. Rejects with `McpServerError` if it cannot be connected, otherwise like `work`, without
   * secrets. Requests of `work` should pass `signal` and `timeout: NO_TIMEOUT_MS`.
   */
  async use<T>(signal: AbortSignal, work: (connection: OpenConnection) => Promise<T>): Promise<T> {
    const connection = await this.#hold(signal).catch(async (error: unknown) => {
      throw await this.#shown(error);
    });
    try {
      const result = await work(connection);
      this.#noteAnswer(connection);
      return result;
    } catch (error) {
      // An error of ours is one of `work`.
      if (!signal.aborted && !(error instanceof TroupeError)) {
        const failure = failureOf(this.#source.sdk, error, connection.transport.sessionId !== undefined);
        this.#noteFailure(connection, error, failure);
      }
      throw await this.#shown(error);
    } finally {
      this.#release(connection);
    }
  }

  /**
   * Calls a tool. Rejects with `ToolNotStartedError` if the server certainly did not run it, else with `McpServerError`.
   */
  async call(call: McpCall): Promise<CallToolResult | InputRequiredResult> {
    const { name } = this.#source.options;
    for (let attempt = 1; ; attempt += 1) {
      const connection = await this.#connectionFor(call);
      try {
        await this.#source.hooks.verify?.(connection, call);
        const result = await this.#inTurn(connection, call);
        this.#noteAnswer(connection);
        return result;
      } catch (error) {
        const failure = failureOf(this.#source.sdk, error, connection.transport.sessionId !== undefined);
        if (call.signal.aborted && !failure.isNotStarted) {
          throw new McpServerError(`the call was ended before the MCP server "${name}" had answered`);
        }
        this.#noteFailure(connection, error, failure);
        if (failure.isSessionLost && attempt === 1) continue;
        if (call.allowInputRequired && error instanceof this.#source.sdk.client.UrlElicitationRequiredError) {
          return visitsOf(error.elicitations);
        }
        const refusal = await this.#authorization?.refusalOf(error);
        const shown = failure.isConnectionLost ? withLastWords(error, connection.transport) : error;
        const last = refusal ?? shown;
        throw this.#source.secrets.redacted(callErrorOf(name, last, failure));
      } finally {
        this.#release(connection);
      }
    }
  }

  /** Closes the connection; requests that are open end with an unknown outcome. Later ones fail without being sent. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#closing.abort();
    const opening = this.#opening;
    this.#opening = undefined;
    await opening?.catch(() => undefined);
    await Promise.all([...this.#open].map((connection) => this.#end(connection)));
  }

  /** Sends the call, after the others if one at a time is allowed. */
  async #inTurn(connection: OpenConnection, call: McpCall): Promise<CallToolResult | InputRequiredResult> {
    const isSerial = this.#source.hooks.isSerial?.(connection.client) === true;
    const release = isSerial ? await this.#slot(call.signal) : undefined;
    this.#calls.add(call);
    try {
      call.onSend?.();
      return await this.#send(connection, call);
    } finally {
      this.#calls.delete(call);
      release?.();
    }
  }

  async #slot(signal: AbortSignal): Promise<() => void> {
    try {
      return await this.#serial.acquire(signal);
    } catch {
      throw new ToolNotStartedError("the call was ended while it waited for another one");
    }
  }

  async #send({ client }: OpenConnection, call: McpCall): Promise<CallToolResult | InputRequiredResult> {
    const { tool, args, signal, onProgress, meta, headers, allowInputRequired = false, input } = call;
    // Without the server's output schema: a result that does not fit it is a result nevertheless.
    const toolDefinition = { name: tool.name, inputSchema: tool.inputSchema } as McpTool;
    return await client.callTool(
      {
        name: tool.name,
        arguments: args,
        ...this.#metaOf(client, meta),
        // A server of the older era wants the same call once more.
        ...(input === undefined || client.getProtocolEra() === "legacy"
          ? {}
          : {
              inputResponses: input.responses,
              ...(input.state === undefined ? {} : { requestState: input.state }),
            }),
      },
      {
        signal,
        timeout: NO_TIMEOUT_MS,
        toolDefinition,
        allowInputRequired,
        ...(headers === undefined ? {} : { headers }),
        onprogress: ({ progress, total, message }) =>
          onProgress({
            progress,
            ...(total === undefined ? {} : { total }),
            ...(message === undefined ? {} : { message }),
          }),
      },
    );
  }

  #metaOf(client: Client, meta: JsonObject | undefined): { readonly _meta?: Readonly<Record<string, unknown>> } {
    const { sdk, hooks } = this.#source;
    if (hooks.callCapabilities === undefined || client.getProtocolEra() === "legacy") {
      return meta === undefined ? {} : { _meta: meta };
    }
    return { _meta: { [sdk.client.CLIENT_CAPABILITIES_META_KEY]: hooks.callCapabilities, ...meta } };
  }

  /** A connection that is held for the call; every error means that the call was not sent. */
  async #connectionFor({ signal }: McpCall): Promise<OpenConnection> {
    const { options, secrets } = this.#source;
    try {
      return await this.#hold(signal);
    } catch (error) {
      const refusal = await this.#authorization?.refusalOf(error);
      if (refusal instanceof McpAuthorizationError) throw refusal;
      const message = `The MCP server "${options.name}" did not run the tool: ${wordsOf(refusal ?? error)}`;
      throw secrets.redacted(new ToolNotStartedError(message));
    }
  }

  /** The error without secrets, or the login that is needed. */
  async #shown(error: unknown): Promise<unknown> {
    const last = (await this.#authorization?.refusalOf(error)) ?? error;
    return last instanceof Error ? this.#source.secrets.redacted(last) : last;
  }

  async #hold(signal: AbortSignal): Promise<OpenConnection> {
    for (;;) {
      if (this.#isClosed) throw new McpServerError("the connection was closed by close()");
      if (this.#opening === undefined) {
        this.#opening = this.#connect(this.#backoff.begin());
      }
      // A caller that is aborted first does not wait for it.
      this.#opening.catch(() => undefined);
      const connection = await abortable(this.#opening, signal);
      signal.throwIfAborted();
      // It may have been lost meanwhile.
      if (connection.isRetired) continue;
      connection.uses += 1;
      if (connection.transport instanceof StdioTransport) connection.transport.ref();
      return connection;
    }
  }

  #release(connection: OpenConnection): void {
    connection.uses -= 1;
    if (connection.uses > 0) return;
    if (connection.isRetired) void this.#end(connection);
    else if (connection.transport instanceof StdioTransport) connection.transport.unref();
  }

  #noteAnswer(connection: OpenConnection): void {
    if (connection.hasAnswered) return;
    connection.hasAnswered = true;
    this.#backoff.succeeded();
  }

  #noteFailure(connection: OpenConnection, error: unknown, failure: CallFailure): void {
    if (error instanceof this.#source.sdk.client.ProtocolError) this.#noteAnswer(connection);
    if (failure.isConnectionLost) this.#retire(connection);
  }

  #retire(connection: OpenConnection): void {
    if (connection.isRetired) return;
    connection.isRetired = true;
    this.#opening = undefined;
    if (connection.uses === 0) void this.#end(connection);
  }

  async #end(connection: OpenConnection): Promise<void> {
    connection.isRetired = true;
    this.#open.delete(connection);
    const { client, transport } = connection;
    // The server may be gone, or not end sessions on request: neither matters to the caller.
    if (transport instanceof this.#source.sdk.client.StreamableHTTPClientTransport) {
      await abortable(transport.terminateSession(), AbortSignal.timeout(ENDING_MS)).catch(() => undefined);
    }
    await client.close().catch(() => undefined);
  }

  async #connect(round: number): Promise<OpenConnection> {
    const { server } = this.#source;
    this.#prior ??= server.isLegacy ? { kind: "legacy" } : undefined;
    try {
      const connection = await this.#connectByAny();
      const { client, transport } = connection;
      this.#open.add(connection);
      const onclose = (): void => {
        if (!connection.isRetired && !connection.hasAnswered) {
          const words = transport instanceof StdioTransport ? transport.lastWords : "";
          this.#backoff.failed(round, words === "" ? "it ended the connection" : words);
        }
        this.#open.delete(connection);
        this.#retire(connection);
      };
      Object.assign(client, { onclose });
      const discover = client.getDiscoverResult();
      const isModern = client.getProtocolEra() === "modern" && discover !== undefined;
      this.#prior = isModern ? { kind: "modern", discover } : { kind: "legacy" };
      // A new process has to answer before a call is sent to it: a call to one that fails to start is then not started.
      if (isModern && this.#source.options.url === undefined) this.#prior = undefined;
      server.isLegacy = !isModern;
      return connection;
    } catch (error) {
      this.#opening = undefined;
      // The server may have been replaced by one with another protocol.
      this.#prior = undefined;
      server.isLegacy = false;
      if (!this.#isClosed && isFaultOfServer(this.#source, error)) this.#backoff.failed(round, wordsOf(error));
      throw error;
    }
  }

  async #connectByAny(): Promise<OpenConnection> {
    const { sdk, options, server } = this.#source;
    const source: TransportSource = { ...this.#source, owner: this.owner, authorization: this.#authorization };
    const { url } = options;
    if (url === undefined) return await this.#connectByStdio(source);
    if (server.isSse) return await this.#connectBy(sseTransport(source, url));
    try {
      return await this.#connectBy(httpTransport(source, url));
    } catch (error) {
      if (!isUnknownTransport(sdk, error)) throw error;
      const connection = await this.#connectBy(sseTransport(source, url)).catch(() => undefined);
      if (connection === undefined) throw error;
      server.isSse = true;
      return connection;
    }
  }

  /** Some servers of the older era end at the first request that is not theirs: those are started once more, without negotiation. */
  async #connectByStdio(source: TransportSource): Promise<OpenConnection> {
    const transport = stdioTransport(source);
    try {
      return await this.#connectBy(transport);
    } catch (error) {
      const { SdkError, SdkErrorCode } = source.sdk.client;
      const isEnded = error instanceof SdkError && error.code === SdkErrorCode.EraNegotiationFailed;
      if (!isEnded || this.#prior !== undefined || this.#isClosed) throw withLastWords(error, transport);
    }
    this.#prior = { kind: "legacy" };
    const second = stdioTransport(source);
    try {
      return await this.#connectBy(second);
    } catch (error) {
      throw withLastWords(error, second);
    }
  }

  async #connectBy(transport: Transport): Promise<OpenConnection> {
    const { sdk, options, hooks } = this.#source;
    const { onListChanged } = hooks;
    const changed = (list: ServerLists) => ({
      autoRefresh: false,
      onChanged: () => onListChanged?.(list, client),
    });
    const client = new sdk.client.Client(
      { name: "troupe", version: "1" },
      {
        // Without handlers nothing is declared: the client refuses the server's own requests.
        capabilities: hooks.capabilities ?? {},
        versionNegotiation: { mode: "auto" },
        inputRequired: { autoFulfill: false },
        ...(onListChanged === undefined
          ? {}
          : { listChanged: { tools: changed("tools"), prompts: changed("prompts"), resources: changed("resources") } }),
      },
    );
    hooks.prepare?.(client, this);
    try {
      await client.connect(transport, {
        timeout: options.connectTimeoutMs ?? 30_000,
        signal: this.#closing.signal,
        ...(this.#prior === undefined ? {} : { prior: this.#prior }),
      });
    } catch (error) {
      void client.close().catch(() => undefined);
      throw error;
    }
    return { client, transport, uses: 0, hasAnswered: false, isRetired: false };
  }
}

/** A server of the older era refuses a call until addresses were visited: in the form of the newer era. */
function visitsOf(elicitations: UrlElicitationRequiredError["elicitations"]): InputRequiredResult {
  const requests = elicitations.map((params, index) => [`visit${index}`, { method: "elicitation/create", params }]);
  return { resultType: "input_required", inputRequests: Object.fromEntries(requests) as InputRequests };
}

/** The error, with what is known about the end of the program. */
function withLastWords(error: unknown, transport: Transport): unknown {
  const words = transport instanceof StdioTransport ? transport.lastWords : "";
  return words === "" ? error : new McpServerError(`${wordsOf(error)}; ${words}`);
}

/** Whether the server does not have the newer transport: it refuses the method or the path. */
function isUnknownTransport({ client }: McpSdk, error: unknown): boolean {
  return error instanceof client.SdkHttpError && [400, 404, 405, 406, 415].includes(error.status);
}

/** Whether a failure to connect comes from the server, not from missing credentials. */
function isFaultOfServer({ sdk }: ConnectionSource, error: unknown): boolean {
  const { InsufficientScopeError, UnauthorizedError } = sdk.client;
  const isRefused = error instanceof UnauthorizedError || error instanceof InsufficientScopeError;
  return !(isRefused || error instanceof ToolNotStartedError || error instanceof McpAuthorizationError);
}
