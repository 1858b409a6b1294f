import { createHash } from "node:crypto";
import type { ServerResponse } from "node:http";
import { createAnthropic } from "@ai-sdk/anthropic";
import { onTestFinished } from "vitest";
import { type LanguageModel, openaiModel } from "../../src/index.ts";
import { aiSdkModel } from "../../src/model/ai-sdk.ts";
import { startRawServer } from "./raw-server.ts";

/*
 * A provider that binds thinking to its prefix. The signature of a thinking block is a hash over the request up to that block: tools,
 * instructions, and every earlier block, as they were received. A request with a block whose signature does not fit is refused with 400.
 * The server keeps nothing about conversations that decides about a refusal, so it may be restarted.
 */

/** One part of an answer, in the order in which the model writes them. */
export type StrictPart =
  | { readonly thought: string }
  | { readonly text: string }
  | { readonly call: string; readonly arguments: object };

export interface StrictRequest {
  /** 0 for the server's first request. */
  readonly index: number;
  readonly model: string;
  /** The text of the whole request. */
  readonly text: string;
  /** Whether the request forbids calls. */
  readonly isLast: boolean;
  readonly tools: readonly string[];
  /** How many thinking blocks it contains. */
  readonly thoughts: number;
}

type Replay = "auto" | "bound" | "always";

export interface StrictServer {
  readonly origin: string;
  readonly requests: readonly StrictRequest[];
  /** The message of each refusal. */
  readonly refusals: readonly string[];
  /** Thoughts that a request left out although their prefix was unchanged. */
  readonly leftOut: readonly string[];
  /** A model that is called by the Messages protocol of Anthropic. */
  messages(name?: string, thinkingReplay?: Replay): LanguageModel;
  /** A model that is called by Chat Completions, with signed `reasoning_details`, as gateways have them. */
  chat(name?: string, thinkingReplay?: Replay): LanguageModel;
  stop(): Promise<void>;
}

type Fields = Readonly<Record<string, unknown>>;

/** A block of a prompt, without what is not part of its prefix. */
interface Block {
  readonly role: string;
  readonly value: Fields;
  readonly path: string;
}

interface Prompt {
  readonly head: unknown;
  readonly blocks: readonly Block[];
}

interface Protocol {
  prompt(body: Fields): Prompt;
  isLast(body: Fields): boolean;
  toolNames(body: Fields): readonly string[];
  /** The blocks of an answer; thinking without a signature. */
  written(parts: readonly StrictPart[], index: number): readonly Fields[];
  refusal(message: string): object;
  send(response: ServerResponse, body: Fields, answer: Answer): void;
}

interface Answer {
  readonly index: number;
  readonly blocks: readonly Fields[];
}

const isThought = (value: Fields): boolean => value["type"] === "thinking";
const list = (value: unknown): readonly Fields[] => (Array.isArray(value) ? (value as readonly Fields[]) : []);
const { stringify } = JSON;

function signatureOf({ head, blocks }: Prompt, before: number, own: readonly Fields[] = []): string {
  const earlier = blocks.slice(0, before).map(({ role, value }) => [role, value]);
  const written = own.map((value) => ["assistant", value]);
  return createHash("sha256")
    .update(stringify([head, ...earlier, ...written]))
    .digest("base64url");
}

/** Blocks of one message of Anthropic; `cache_control` is not part of a prefix. */
function blocksOf({ role, content }: Fields, path: string): Block[] {
  const parts = typeof content === "string" ? [{ type: "text", text: content }] : list(content);
  return parts.map(({ cache_control: _mark, ...value }, index) => ({
    role: String(role),
    value,
    path: `${path}.content.${index}`,
  }));
}

function unmarked(given: unknown): unknown {
  if (Array.isArray(given)) return given.map(unmarked);
  if (typeof given !== "object" || given === null) return given;
  const { cache_control: _mark, ...rest } = given as Fields;
  return rest;
}

const anthropic: Protocol = {
  prompt: (body) => ({
    head: [list(body["tools"]).map(unmarked), unmarked(body["system"] ?? [])],
    blocks: list(body["messages"]).flatMap((message, index) => blocksOf(message, `messages.${index}`)),
  }),
  isLast: (body) => (body["tool_choice"] as Fields | undefined)?.["type"] === "none",
  toolNames: (body) => list(body["tools"]).map(({ name }) => String(name)),
  written: (parts, index) =>
    parts.map((part, at) => {
      if ("thought" in part) return { type: "thinking", thinking: part.thought };
      if ("text" in part) return { type: "text", text: part.text };
      return { type: "tool_use", id: `toolu_${index}_${at}`, name: part.call, input: part.arguments };
    }),
  refusal: (message) => ({ type: "error", error: { type: "invalid_request_error", message } }),
  send: (response, body, { index, blocks }) => {
    const usage = { input_tokens: 100, cache_read_input_tokens: 0, output_tokens: 10 };
    const message = { id: `msg_${index}`, type: "message", role: "assistant", model: body["model"], content: [] };
    const events: object[] = [{ type: "message_start", message: { ...message, stop_reason: null, usage } }];
    for (const [at, block] of blocks.entries()) {
      const [start, ...deltas] = anthropicPieces(block);
      events.push({ type: "content_block_start", index: at, content_block: start });
      for (const delta of deltas) events.push({ type: "content_block_delta", index: at, delta });
      events.push({ type: "content_block_stop", index: at });
    }
    const calls = blocks.some(({ type }) => type === "tool_use");
    const delta = { stop_reason: calls ? "tool_use" : "end_turn", stop_sequence: null };
    events.push({ type: "message_delta", delta, usage: { output_tokens: 30 } }, { type: "message_stop" });
    sendEvents(response, events);
  },
};

function anthropicPieces(block: Fields): readonly object[] {
  if (isThought(block)) {
    return [
      { type: "thinking", thinking: "", signature: "" },
      { type: "thinking_delta", thinking: block["thinking"] },
      { type: "signature_delta", signature: block["signature"] },
    ];
  }
  if (block["type"] === "text")
    return [
      { type: "text", text: "" },
      { type: "text_delta", text: block["text"] },
    ];
  return [
    { ...block, input: {} },
    { type: "input_json_delta", partial_json: stringify(block["input"]) },
  ];
}

/** A text that is marked for the cache is sent as a part. */
function chatContent(content: unknown): unknown {
  const [first, ...more] = Array.isArray(content) ? (content as readonly Fields[]) : [];
  return first?.["type"] === "text" && more.length === 0 ? first["text"] : unmarked(content);
}

/** A message of Chat Completions as blocks: thinking, text, calls. */
function chatBlocks(message: Fields, path: string): Block[] {
  const { role, content, reasoning_details: details, tool_calls: calls, cache_control: _mark, ...others } = message;
  const thoughts = list(details).map(({ text, signature }) => ({ type: "thinking", thinking: text, signature }));
  const values: Fields[] = [...thoughts];
  if (content !== null && content !== undefined) values.push({ type: "text", text: chatContent(content), ...others });
  for (const { id, function: asked } of list(calls)) {
    const { name, arguments: given } = asked as Fields;
    values.push({ type: "tool_use", id, name, input: JSON.parse(String(given)) as unknown });
  }
  return values.map((value, index) => ({ role: String(role), value, path: `${path}.content.${index}` }));
}

const chat: Protocol = {
  prompt: (body) => ({
    head: list(body["tools"]).map(unmarked),
    blocks: list(body["messages"]).flatMap((message, index) => chatBlocks(message, `messages.${index}`)),
  }),
  isLast: (body) => body["tool_choice"] === "none",
  toolNames: (body) => list(body["tools"]).map((tool) => String((tool["function"] as Fields)["name"])),
  // This protocol has one text, after the thinking and before the calls.
  written: (parts, index) => {
    const blocks = anthropic.written(parts, index);
    const of = (type: string): readonly Fields[] => blocks.filter((block) => block["type"] === type);
    const texts = of("text").map(({ text }) => text);
    return [
      ...of("thinking").slice(0, 1),
      ...(texts.length > 0 ? [{ type: "text", text: texts.join("") }] : []),
      ...of("tool_use"),
    ];
  },
  refusal: (message) => ({ error: { message, type: "invalid_request_error", code: 400 } }),
  send: (response, body, { index, blocks }) => {
    const thoughts = blocks.filter(isThought);
    const details = thoughts.map(({ thinking, signature }) => ({ type: "reasoning.text", text: thinking, signature }));
    const calls = blocks
      .filter(({ type }) => type === "tool_use")
      .map(({ id, name, input }, at) => ({
        index: at,
        id,
        type: "function",
        function: { name, arguments: stringify(input) },
      }));
    const fields = {
      role: "assistant",
      content: blocks.find(({ type }) => type === "text")?.["text"] ?? null,
      ...(details.length > 0 ? { reasoning_details: details } : {}),
      ...(calls.length > 0 ? { tool_calls: calls } : {}),
    };
    const end = calls.length > 0 ? "tool_calls" : "stop";
    const usage = { prompt_tokens: 100, completion_tokens: 30, total_tokens: 130 };
    const head = { id: `gen-${index}`, created: 0, model: body["model"] };
    if (body["stream"] !== true) {
      const choices = [{ index: 0, message: fields, finish_reason: end }];
      response.writeHead(200, { "content-type": "application/json" });
      response.end(stringify({ ...head, object: "chat.completion", choices, usage }));
      return;
    }
    const chunk = { ...head, object: "chat.completion.chunk" };
    sendEvents(response, [
      { ...chunk, choices: [{ index: 0, delta: fields, finish_reason: null }] },
      { ...chunk, choices: [{ index: 0, delta: {}, finish_reason: end }], usage },
    ]);
  },
};

function sendEvents(response: ServerResponse, events: readonly object[]): void {
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.end(events.map((event) => `data: ${stringify(event)}\n\n`).join(""));
}

/** What identifies an answer in later requests: its text and calls. */
function identityOf(model: unknown, blocks: readonly Fields[]): string {
  const spoken = blocks.filter((block) => !isThought(block));
  return stringify([model, spoken.map(({ type, text, id }) => [type, text ?? id])]);
}

const key = { apiKey: "key-for-tests" };

/** A server on 127.0.0.1 that is stopped when the test has finished, or before by `stop`. */
export async function startStrictServer(
  answer: (request: StrictRequest) => readonly StrictPart[] | Promise<readonly StrictPart[]>,
): Promise<StrictServer> {
  const requests: StrictRequest[] = [];
  const refusals: string[] = [];
  const leftOut: string[] = [];
  /** Answers so far, to find thoughts that are left out needlessly. */
  const answers = new Map<string, readonly Fields[]>();
  const server = await startRawServer(async (request, response, text) => {
    const protocol = request.url === "/v1/messages" ? anthropic : chat;
    const body = JSON.parse(text) as Fields;
    const prompt = protocol.prompt(body);
    const { blocks } = prompt;
    const received: StrictRequest = {
      index: requests.length,
      model: String(body["model"]),
      text,
      isLast: protocol.isLast(body),
      tools: protocol.toolNames(body),
      thoughts: blocks.filter(({ value }) => isThought(value)).length,
    };
    requests.push(received);
    const { index } = received;
    const wrong = blocks.find(({ value }, at) => isThought(value) && value["signature"] !== signatureOf(prompt, at));
    if (wrong) {
      const message = `${wrong.path}: Invalid \`signature\` in \`thinking\` block. The block is bound to a different conversation.`;
      refusals.push(message);
      response.writeHead(400, { "content-type": "application/json" });
      response.end(stringify(protocol.refusal(message)));
      return;
    }
    for (const [at, own] of ownAnswers(blocks)) {
      const original = answers.get(identityOf(body["model"], own)) ?? [];
      const [first] = original;
      const isMissing = first && isThought(first) && !own.some(isThought);
      if (isMissing && first["signature"] === signatureOf(prompt, at)) leftOut.push(String(first["thinking"]));
    }
    const written: Fields[] = [];
    for (const block of protocol.written(await answer(received), index)) {
      const signature = signatureOf(prompt, blocks.length, written);
      written.push(isThought(block) ? { ...block, signature } : block);
    }
    answers.set(identityOf(body["model"], written), written);
    if (!response.destroyed) protocol.send(response, body, { index, blocks: written });
  });
  let isStopped = false;
  const stop = async (): Promise<void> => {
    if (isStopped) return;
    isStopped = true;
    await server.stop();
  };
  onTestFinished(stop);
  return {
    origin: server.origin,
    requests,
    refusals,
    leftOut,
    messages: (name = "claude-opus-5-5", thinkingReplay = "auto") =>
      aiSdkModel(createAnthropic({ baseURL: `${server.origin}/v1`, ...key })(name), { thinkingReplay }),
    chat: (name = "anthropic/claude-opus-5.5", thinkingReplay = "auto") =>
      openaiModel(name, { provider: "openrouter", baseURL: `${server.origin}/v1`, ...key, thinkingReplay }),
    stop,
  };
}

/** The answers of a prompt, with the position of their first block. */
function ownAnswers(blocks: readonly Block[]): readonly (readonly [number, readonly Fields[]])[] {
  const found: [number, Fields[]][] = [];
  let before = "";
  for (const [at, { role, value }] of blocks.entries()) {
    if (role === "assistant" && before !== "assistant") found.push([at, []]);
    if (role === "assistant") found.at(-1)?.[1].push(value);
    before = role;
  }
  return found;
}
