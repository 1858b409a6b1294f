import type { CallToolResult, Client, PriorDiscovery, Tool as McpTool, Transport } from "@modelcontextprotocol/client";
import { z } from "zod";
import { abortable } from "../base/index.ts";
import { ToolNotStartedError } from "../errors/index.ts";
import type { Json, JsonObject } from "../state/index.ts";
import { boundedFetch } from "./bounded-fetch.ts";
import { callErrorOf, failureOf, wordsOf } from "./mcp-errors.ts";
import { McpServerError } from "./mcp-server-error.ts";
import type { McpOptions } from "./mcp-options.ts";
import type { McpSdk } from "./mcp-sdk.ts";
import type { McpSecrets } from "./mcp-secrets.ts";

/** A tool as its server lists it, unchecked but for the name. */
export interface ListedTool {
  readonly name: string;
  readonly description?: unknown;
  readonly inputSchema?: unknown;
  readonly annotations?: unknown;
  readonly execution?: unknown;
}

/** One call of a tool. */
export interface McpCall {
  readonly tool: ListedTool;
  readonly args: JsonObject;
  readonly signal: AbortSignal;
  readonly onProgress: (update: Json) => void;
}

interface OpenConnection {
  readonly client: Client;
  readonly transport: Transport;
  /** Number of calls that use the connection. */
  calls: number;
  /** Whether it gets no further calls; it is closed after its last one. */
  isRetired: boolean;
}

/** Largest answer, or event of a stream, in bytes. */
const MAX_BYTES = 32_000_000;
/** Pages and tools of one list. */
const MAX_PAGES = 100;
const MAX_TOOLS = 1_000;
/** Longest text of a server's stderr that is kept for an error, in UTF-16 units. */
const LONGEST_STDERR = 1_000;
/** Longest wait for the end of a session, in milliseconds. */
const ENDING_MS = 2_000;
/** The runtime ends calls by their signal: the client's own limit, in milliseconds, must not be shorter. */
const NO_TIMEOUT_MS = 2_147_483_647;

/** The code of the error for a request whose stream has ended; it leaves the outcome unknown. */
const STREAM_ENDED = -32_000;

const pageSchema = z.object({ tools: z.array(z.unknown()), nextCursor: z.string().optional() });
const listedSchema = z.looseObject({ name: z.string().min(1).max(1_000) });

/**
 * The connection to one server, which all agents share. Invariants:
 * 1. At most one connection is being opened or takes new calls.
 * 2. A lost connection is replaced by a new client and a new transport, at the next call.
 * 3. A connection is closed only after its last call, or by `close()`.
 * 4. A call is sent once; only if the server has forgotten the session, it is sent once more in another one.
 */
export class McpConnection {
  readonly #sdk: McpSdk;
  readonly #options: McpOptions;
  readonly #secrets: McpSecrets;
  #opening: Promise<OpenConnection> | undefined;
  readonly #open = new Set<OpenConnection>();
  /** The protocol that the server was found to use: reconnecting needs no second negotiation. */
  #prior: PriorDiscovery | undefined;
  /** Whether the server offers only the older of both transports over HTTP. */
  #isSse = false;
  #isClosed = false;
  /** Ends an attempt to connect. */
  readonly #closing = new AbortController();

  constructor(sdk: McpSdk, options: McpOptions, secrets: McpSecrets) {
    this.#sdk = sdk;
    this.#options = options;
    this.#secrets = secrets;
  }

  /** All tools that the server lists; entries without a usable name are left out. */
  async listTools(signal: AbortSignal): Promise<ListedTool[]> {
    return await this.#using(signal, async ({ client }) => {
      const tools: ListedTool[] = [];
      let cursor: string | undefined;
      for (let page = 0; page < MAX_PAGES; page += 1) {
        const params = cursor === undefined ? {} : { cursor };
        const options = { signal, timeout: NO_TIMEOUT_MS };
        const { tools: listed, nextCursor } = await client.request(
          { method: "tools/list", params },
          pageSchema,
          options,
        );
        for (const tool of listed) {
          const read = listedSchema.safeParse(tool);
          if (read.success) tools.push(read.data);
        }
        if (tools.length > MAX_TOOLS) break;
        if (nextCursor === undefined) return tools;
        cursor = nextCursor;
      }
      throw new McpServerError(
        `the list of tools does not end within ${MAX_PAGES} pages and ${MAX_TOOLS} tools; ask the server's author for a shorter one`,
      );
    });
  }

  /**
   * Calls a tool. Rejects with `ToolNotStartedError` if the server certainly did not run it, else with `McpServerError`.
   */
  async call(call: McpCall): Promise<CallToolResult> {
    const { name } = this.#options;
    for (let attempt = 1; ; attempt += 1) {
      const connection = await this.#connectionFor(call);
      const { transport } = connection;
      try {
        return await this.#send(connection, call);
      } catch (error) {
        if (call.signal.aborted) {
          throw new McpServerError(`the call was ended before the MCP server "${name}" had answered`);
        }
        const failure = failureOf(this.#sdk, error, transport.sessionId !== undefined);
        if (failure.isConnectionLost) this.#retire(connection);
        if (failure.isSessionLost && attempt === 1) continue;
        throw this.#secrets.redacted(callErrorOf(name, error, failure));
      } finally {
        this.#release(connection);
      }
    }
  }

  /** Closes the connection; calls that are open end with an unknown outcome. Later calls fail without being sent. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#closing.abort();
    const opening = this.#opening;
    this.#opening = undefined;
    await opening?.catch(() => undefined);
    await Promise.all([...this.#open].map((connection) => this.#end(connection)));
  }

  async #send({ client }: OpenConnection, { tool, args, signal, onProgress }: McpCall): Promise<CallToolResult> {
    // Without the server's output schema: a result that does not fit it is a result nevertheless.
    const toolDefinition = { name: tool.name, inputSchema: tool.inputSchema } as McpTool;
    return await client.callTool(
      { name: tool.name, arguments: args },
      {
        signal,
        timeout: NO_TIMEOUT_MS,
        toolDefinition,
        onprogress: ({ progress, total, message }) =>
          onProgress({
            progress,
            ...(total === undefined ? {} : { total }),
            ...(message === undefined ? {} : { message }),
          }),
      },
    );
  }

  /** A connection that is held for the call; every error means that the call was not sent. */
  async #connectionFor({ signal }: McpCall): Promise<OpenConnection> {
    try {
      return await this.#hold(signal);
    } catch (error) {
      const message = `The MCP server "${this.#options.name}" did not run the tool: ${wordsOf(error)}`;
      throw this.#secrets.redacted(new ToolNotStartedError(message));
    }
  }

  async #using<T>(signal: AbortSignal, work: (connection: OpenConnection) => Promise<T>): Promise<T> {
    const connection = await this.#hold(signal);
    try {
      return await work(connection);
    } finally {
      this.#release(connection);
    }
  }

  async #hold(signal: AbortSignal): Promise<OpenConnection> {
    for (;;) {
      if (this.#isClosed) throw new McpServerError("the connection was closed by close()");
      this.#opening ??= this.#connect();
      // A caller that is aborted first does not wait for it.
      this.#opening.catch(() => undefined);
      const connection = await abortable(this.#opening, signal);
      signal.throwIfAborted();
      // It may have been lost meanwhile.
      if (connection.isRetired) continue;
      connection.calls += 1;
      return connection;
    }
  }

  #release(connection: OpenConnection): void {
    connection.calls -= 1;
    if (connection.isRetired && connection.calls === 0) void this.#end(connection);
  }

  #retire(connection: OpenConnection): void {
    if (connection.isRetired) return;
    connection.isRetired = true;
    this.#opening = undefined;
    if (connection.calls === 0) void this.#end(connection);
  }

  async #end(connection: OpenConnection): Promise<void> {
    connection.isRetired = true;
    this.#open.delete(connection);
    const { client, transport } = connection;
    // The server may be gone, or not end sessions on request: neither matters to the caller.
    if (transport instanceof this.#sdk.client.StreamableHTTPClientTransport) {
      await abortable(transport.terminateSession(), AbortSignal.timeout(ENDING_MS)).catch(() => undefined);
    }
    await client.close().catch(() => undefined);
  }

  async #connect(): Promise<OpenConnection> {
    try {
      const connection = await this.#connectByAny();
      const { client } = connection;
      this.#open.add(connection);
      const onclose = (): void => {
        this.#open.delete(connection);
        this.#retire(connection);
      };
      Object.assign(client, { onclose });
      const discover = client.getDiscoverResult();
      const isModern = client.getProtocolEra() === "modern" && discover !== undefined;
      this.#prior = isModern ? { kind: "modern", discover } : { kind: "legacy" };
      return connection;
    } catch (error) {
      this.#opening = undefined;
      // The server may have been replaced by one with another protocol.
      this.#prior = undefined;
      throw error;
    }
  }

  async #connectByAny(): Promise<OpenConnection> {
    const { url } = this.#options;
    if (url === undefined) return await this.#connectByStdio();
    if (this.#isSse) return await this.#connectBy(this.#sseTransport(url));
    try {
      return await this.#connectBy(this.#httpTransport(url));
    } catch (error) {
      if (!isUnknownTransport(this.#sdk, error)) throw error;
      const connection = await this.#connectBy(this.#sseTransport(url)).catch(() => undefined);
      if (connection === undefined) throw error;
      this.#isSse = true;
      return connection;
    }
  }

  async #connectByStdio(): Promise<OpenConnection> {
    const { command = "", args = [], env, cwd } = this.#options;
    const transport = new this.#sdk.stdio.StdioClientTransport({
      command,
      args: [...args],
      ...(env === undefined ? {} : { env: { ...env } }),
      ...(cwd === undefined ? {} : { cwd }),
      stderr: "pipe",
      maxBufferSize: MAX_BYTES,
    });
    let stderr = "";
    transport.stderr?.on("data", (chunk: Buffer) => {
      stderr = `${stderr}${chunk.toString()}`.slice(-LONGEST_STDERR);
    });
    try {
      return await this.#connectBy(transport);
    } catch (error) {
      if (stderr.trim() === "") throw error;
      throw new McpServerError(`${wordsOf(error)}; it wrote to stderr: ${stderr.trim()}`);
    }
  }

  async #connectBy(transport: Transport): Promise<OpenConnection> {
    const { client: sdk } = this.#sdk;
    const client = new sdk.Client(
      { name: "troupe", version: "1" },
      // Nothing is declared: no handler of ours answers a server's own requests.
      { capabilities: {}, versionNegotiation: { mode: "auto" }, inputRequired: { autoFulfill: false } },
    );
    const timeout = this.#options.connectTimeoutMs ?? 30_000;
    try {
      await client.connect(transport, {
        timeout,
        signal: this.#closing.signal,
        ...(this.#prior === undefined ? {} : { prior: this.#prior }),
      });
    } catch (error) {
      void client.close().catch(() => undefined);
      throw error;
    }
    return { client, transport, calls: 0, isRetired: false };
  }

  /** A transport that ends a request whose stream ends without an answer; the client would wait for it. */
  #httpTransport(url: string): Transport {
    const transport = new this.#sdk.client.StreamableHTTPClientTransport(new URL(url), { fetch: this.#fetch() });
    const send = transport.send.bind(transport);
    transport.send = async (message, options) => {
      const onRequestStreamEnd = (): void => {
        // The client ignores a second answer.
        if (Array.isArray(message) || !("method" in message) || !("id" in message)) return;
        const error = { code: STREAM_ENDED, message: "the connection ended before the answer" };
        transport.onmessage?.({ jsonrpc: "2.0", id: message.id, error });
      };
      await send(message, { ...options, onRequestStreamEnd });
    };
    return transport;
  }

  #sseTransport(url: string): Transport {
    return new this.#sdk.client.SSEClientTransport(new URL(url), { fetch: this.#fetch() });
  }

  #fetch(): typeof fetch {
    return boundedFetch({ maxBytes: MAX_BYTES, headers: () => this.#secrets.headers() });
  }
}

/** Whether the server does not have the newer transport: it refuses the method or the path. */
function isUnknownTransport({ client }: McpSdk, error: unknown): boolean {
  return error instanceof client.SdkHttpError && [400, 404, 405, 406, 415].includes(error.status);
}
