import type { IncomingHttpHeaders, ServerResponse } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import type { ScriptedReply } from "../../src/testing/index.ts";
import { startRawServer } from "./raw-server.ts";

/** A Chat Completions request as received. */
export interface WireRequestBody {
  readonly model: string;
  readonly stream?: boolean;
  readonly messages: readonly {
    readonly role: string;
    readonly content?: unknown;
    readonly tool_call_id?: string;
    readonly tool_calls?: readonly { readonly id: string; readonly function: { name: string; arguments: string } }[];
  }[];
  readonly tools?: readonly { readonly function: { readonly name: string } }[];
  readonly [field: string]: unknown;
}

/** An answer as for `scriptedModel`; `error` becomes a 500. Or a failure of the connection. */
export interface ServerReply extends ScriptedReply {
  /** Answers with this status and `errorBody` instead of a completion. */
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly errorBody?: object;
  /** Cuts the connection after this many stream chunks; a whole answer is cut before its first byte. */
  readonly cutAfterChunks?: number;
  /** Milliseconds between the chunks of a streamed answer. Default: none, all are sent at once. */
  readonly gapMs?: number;
}
export type ServerAnswer = string | ServerReply;

export interface ServerCall {
  /** 0 for the server's first request. */
  readonly index: number;
  readonly headers: IncomingHttpHeaders;
  /** Aborted if the client disconnects before the answer is complete. */
  readonly signal: AbortSignal;
}

export interface LoggedRequest {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: WireRequestBody;
}

export interface ModelServer {
  /** For `openaiModel(name, { baseURL })`. */
  readonly baseURL: string;
  readonly requests: readonly LoggedRequest[];
  /** TCP connections accepted so far. */
  connections(): number;
  stop(): Promise<void>;
}

/** A small Chat Completions server on 127.0.0.1, streamed or whole as the request asks. */
export async function startModelServer(
  handler: (body: WireRequestBody, call: ServerCall) => ServerAnswer | Promise<ServerAnswer>,
): Promise<ModelServer> {
  const requests: LoggedRequest[] = [];
  const server = await startRawServer(async (request, response, text) => {
    if (request.method !== "POST" || request.url !== "/v1/chat/completions") {
      sendJson(response, 404, { error: { message: `No such path: ${request.method} ${request.url}` } });
      return;
    }
    const body = JSON.parse(text) as WireRequestBody;
    const index = requests.push({ path: request.url, headers: request.headers, body }) - 1;
    const gone = new AbortController();
    response.on("close", () => gone.abort());
    const answer = await handler(body, { index, headers: request.headers, signal: gone.signal });
    const reply = typeof answer === "string" ? { text: answer } : answer;
    await reply.delayUntil;
    if (!response.destroyed) await send(response, body, reply, `chatcmpl-${index}`);
  });
  return {
    baseURL: `${server.origin}/v1`,
    requests,
    connections: () => server.connections(),
    stop: () => server.stop(),
  };
}

async function send(response: ServerResponse, body: WireRequestBody, reply: ServerReply, id: string): Promise<void> {
  for (const [name, value] of Object.entries(reply.headers ?? {})) response.setHeader(name, value);
  if (reply.status !== undefined || reply.error !== undefined) {
    const message = reply.error?.message ?? `status ${reply.status}`;
    sendJson(response, reply.status ?? 500, reply.errorBody ?? { error: { message } });
    return;
  }
  const head = { id, created: 0, model: body.model };
  if (body.stream === true) {
    await sendEvents(response, body, reply, head);
    return;
  }
  if (reply.cutAfterChunks !== undefined) {
    response.destroy();
    return;
  }
  const message = { role: "assistant", content: replyText(reply), ...reasoningOf(reply), ...callsOf(reply, id) };
  const choices = [{ index: 0, message, finish_reason: finishOf(reply) }];
  sendJson(response, 200, { ...head, object: "chat.completion", choices, usage: usageOf(body, reply) });
}

async function sendEvents(
  response: ServerResponse,
  body: WireRequestBody,
  reply: ServerReply,
  head: { readonly id: string },
): Promise<void> {
  const chunk = (fields: object): string =>
    `data: ${JSON.stringify({ ...head, object: "chat.completion.chunk", ...fields })}\n\n`;
  const delta = (fields: object): string => chunk({ choices: [{ index: 0, delta: fields, finish_reason: null }] });
  const events = [delta({ role: "assistant", content: "" })];
  if (reply.reasoning !== undefined) events.push(delta(reasoningOf(reply)));
  for (const content of reply.deltas ?? [replyText(reply)]) events.push(delta({ content }));
  for (const [index, call] of (callsOf(reply, head.id).tool_calls ?? []).entries()) {
    events.push(delta({ tool_calls: [{ index, ...call }] }));
  }
  events.push(chunk({ choices: [{ index: 0, delta: {}, finish_reason: finishOf(reply) }] }));
  events.push(chunk({ choices: [], usage: usageOf(body, reply) }), "data: [DONE]\n\n");
  response.writeHead(200, { "content-type": "text/event-stream" });
  if (reply.cutAfterChunks !== undefined) {
    response.write(events.slice(0, reply.cutAfterChunks).join(""), () => response.destroy());
    return;
  }
  for (const event of reply.gapMs === undefined ? [] : events.splice(0)) {
    if (response.destroyed) return;
    response.write(event);
    await delay(reply.gapMs);
  }
  response.end(events.join(""));
}

function sendJson(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
}

function replyText(reply: ServerReply): string {
  return reply.text ?? (reply.deltas ?? []).join("");
}

function reasoningOf(reply: ServerReply): object {
  return reply.reasoning === undefined ? {} : { reasoning_content: reply.reasoning };
}

function callsOf(reply: ServerReply, id: string): { tool_calls?: readonly object[] } {
  if (reply.toolCalls === undefined || reply.toolCalls.length === 0) return {};
  const calls = reply.toolCalls.map((call, position) => ({
    id: call.id ?? `call_${id}_${position}`,
    type: "function",
    function: {
      name: call.name,
      arguments: typeof call.arguments === "string" ? call.arguments : JSON.stringify(call.arguments ?? {}),
    },
  }));
  return { tool_calls: calls };
}

function finishOf(reply: ServerReply): string {
  return reply.finishReason ?? ((reply.toolCalls?.length ?? 0) === 0 ? "stop" : "tool_calls");
}

function usageOf(body: WireRequestBody, reply: ServerReply): object {
  const prompt = reply.usage?.inputTokens ?? Math.ceil(JSON.stringify(body.messages).length / 4);
  const completion =
    reply.usage?.outputTokens ??
    Math.max(1, Math.ceil((replyText(reply) + JSON.stringify(reply.toolCalls ?? "")).length / 4));
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_tokens_details: { cached_tokens: reply.usage?.cachedInputTokens ?? 0 },
    completion_tokens_details: { reasoning_tokens: reply.usage?.reasoningTokens ?? 0 },
  };
}
