import type { Transport } from "@modelcontextprotocol/client";
import { boundedFetch } from "./bounded-fetch.ts";
import type { ActorAuthorization } from "./mcp-authorization.ts";
import type { McpOptions, McpOwner } from "./mcp-options.ts";
import type { McpSdk } from "./mcp-sdk.ts";
import type { McpSecrets } from "./mcp-secrets.ts";
import { isSupervised, StdioTransport } from "./stdio-transport.ts";

/** What the transports of one owner need. */
export interface TransportSource {
  readonly sdk: McpSdk;
  readonly options: McpOptions;
  readonly secrets: McpSecrets;
  readonly owner: McpOwner;
  readonly authorization: ActorAuthorization | undefined;
}

/** Largest answer, or event of a stream, in bytes. */
const MAX_BYTES = 32_000_000;

/** The code of the error for a request whose stream has ended; it leaves the outcome unknown. */
const STREAM_ENDED = -32_000;

/** Starts the program of the server; unsupervised where that is not possible. */
export function stdioTransport({ sdk, options }: TransportSource): Transport {
  const { command = "", args = [], env, cwd } = options;
  if (isSupervised()) {
    const all = { ...sdk.stdio.getDefaultEnvironment(), ...env };
    return new StdioTransport(sdk, { command, args, env: all, cwd, maxBytes: MAX_BYTES });
  }
  return new sdk.stdio.StdioClientTransport({
    command,
    args: [...args],
    ...(env === undefined ? {} : { env: { ...env } }),
    ...(cwd === undefined ? {} : { cwd }),
    stderr: "ignore",
    maxBufferSize: MAX_BYTES,
  });
}

/** A transport that ends a request whose stream ends without an answer; the client would wait for it. */
export function httpTransport(source: TransportSource, url: string): Transport {
  const transport = new source.sdk.client.StreamableHTTPClientTransport(new URL(url), requestsOf(source));
  const send = transport.send.bind(transport);
  transport.send = async (message, options) => {
    const onRequestStreamEnd = (): void => {
      options?.onRequestStreamEnd?.();
      // The client ignores a second answer, and opens subscriptions again by itself.
      if (Array.isArray(message) || !("method" in message) || !("id" in message)) return;
      if (message.method === "subscriptions/listen") return;
      const error = { code: STREAM_ENDED, message: "the connection ended before the answer" };
      transport.onmessage?.({ jsonrpc: "2.0", id: message.id, error });
    };
    await send(message, { ...options, onRequestStreamEnd });
  };
  return transport;
}

/** A transport that ends with its stream of events: the answers to open requests come over no other one. */
export function sseTransport(source: TransportSource, url: string): Transport {
  const { SSEClientTransport, SseError } = source.sdk.client;
  const transport = new SSEClientTransport(new URL(url), requestsOf(source));
  // The client keeps this handler besides its own.
  const onerror = (error: Error): void => {
    if (error instanceof SseError) void transport.close();
  };
  Object.assign(transport, { onerror });
  return transport;
}

function requestsOf({ secrets, owner, authorization }: TransportSource) {
  const bounded = boundedFetch({ maxBytes: MAX_BYTES, headers: () => secrets.headers(owner) });
  if (authorization === undefined) return { fetch: bounded };
  return { fetch: authorization.noting(bounded), authProvider: authorization.provider };
}
