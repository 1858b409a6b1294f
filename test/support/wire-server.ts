import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { onTestFinished } from "vitest";
import { type LanguageModel, openaiModel, type OpenaiModelOptions } from "../../src/model/index.ts";
import type { ModelResponse } from "../../src/state/index.ts";
import { neverAborted, request } from "./model-calls.ts";

/** A request as received. */
export interface WireRequest {
  /** For instance `POST /v1/chat/completions HTTP/1.1`. */
  readonly line: string;
  /** By their lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** 0 for the server's first request. */
  readonly index: number;
}

export interface WireServer {
  /** `127.0.0.1:port` */
  readonly host: string;
  /** In the order in which they were complete. */
  readonly requests: readonly WireRequest[];
  /** Connections accepted so far. */
  connections(): number;
  /** Connections open now. */
  openConnections(): number;
}

/**
 * A server on 127.0.0.1 that receives each whole request and writes the bytes of its answer itself. It stops with the test.
 */
export async function wireServer(
  answer: (socket: Socket, request: WireRequest) => void,
  onConnection?: (socket: Socket) => void,
): Promise<WireServer> {
  const requests: WireRequest[] = [];
  const open = new Set<Socket>();
  let accepted = 0;
  const server: Server = createServer((socket) => {
    accepted += 1;
    open.add(socket);
    socket.on("close", () => open.delete(socket));
    socket.on("error", () => undefined);
    onConnection?.(socket);
    let received = Buffer.alloc(0);
    socket.on("data", (bytes: Buffer) => {
      received = Buffer.concat([received, bytes]);
      const request = requestOf(received, requests.length);
      if (request === undefined) return;
      received = Buffer.alloc(0);
      requests.push(request);
      answer(socket, request);
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  onTestFinished(async () => {
    for (const socket of open) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  const { port } = server.address() as AddressInfo;
  return {
    host: `127.0.0.1:${port}`,
    requests,
    connections: () => accepted,
    openConnections: () => open.size,
  };
}

/** The request, once it is complete: its length is in `content-length`. */
function requestOf(received: Buffer, index: number): WireRequest | undefined {
  const end = received.indexOf("\r\n\r\n");
  if (end === -1) return undefined;
  const [line = "", ...fields] = received.toString("latin1", 0, end).split("\r\n");
  const headers = Object.fromEntries(
    fields.map((field) => {
      const colon = field.indexOf(":");
      return [field.slice(0, colon).toLowerCase(), field.slice(colon + 1).trim()];
    }),
  );
  const body = received.subarray(end + 4);
  if (body.length < Number(headers["content-length"] ?? 0)) return undefined;
  return { line, headers, body: body.toString("utf8"), index };
}

/** An answer with its length. */
export function wireAnswer(body: string | Buffer, headers = "content-type: application/json", status = 200): Buffer {
  const bytes = Buffer.from(body);
  return Buffer.concat([
    Buffer.from(`HTTP/1.1 ${status} Some\r\n${headers}\r\ncontent-length: ${bytes.length}\r\n\r\n`),
    bytes,
  ]);
}

/** A whole answer of a model. */
export const completion = (content: string): string =>
  JSON.stringify({
    id: "c1",
    choices: [{ index: 0, message: { content }, finish_reason: "stop" }],
    usage: { prompt_tokens: 7, completion_tokens: 3 },
  });
export const goodAnswer = wireAnswer(completion("hello"));

/** With this option a model sends through the client of its provider, which uses this `fetch`. */
export const byClient: OpenaiModelOptions = { fetch: globalThis.fetch };

export function wireModel(server: WireServer, options: OpenaiModelOptions = {}): LanguageModel {
  return openaiModel("m", { apiKey: "key", baseURL: `http://${server.host}/v1`, ...options });
}

export function callOf(server: WireServer, options: OpenaiModelOptions = {}): Promise<ModelResponse> {
  return wireModel(server, options).generate(request, { signal: neverAborted });
}
