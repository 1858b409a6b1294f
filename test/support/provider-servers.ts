import type { ServerResponse } from "node:http";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createGoogleGenerativeAI } from "@ai-sdk/google";
import { createAnthropic as createAnthropicV3 } from "ai-sdk-anthropic-v3";
import { onTestFinished } from "vitest";
import type { LanguageModel } from "../../src/index.ts";
import { aiSdkModel, type AiSdkLanguageModel, type AiSdkModelOptions } from "../../src/model/ai-sdk.ts";
import { startRawServer } from "./raw-server.ts";

// The tests set it to an empty text, which this package refuses when it is loaded.
delete process.env["OPENAI_BASE_URL"];
const { createOpenAI } = await import("@ai-sdk/openai");

/** An answer in general terms; each family writes it in the documented format of its provider. */
export interface ProviderReply {
  readonly thought?: string;
  readonly text?: string;
  readonly calls?: readonly { readonly id: string; readonly name: string; readonly arguments: object }[];
  /** Default `stop`. */
  readonly end?: "stop" | "length" | "filter";
  /** Default: 100 input tokens, 40 of them cached, and 30 output tokens. */
  readonly usage?: "none";
  /** Sends only so many events; then the connection breaks, or stays open without a word. */
  readonly cut?: { readonly after: number; readonly how: "broken" | "silent" };
  /** An error inside the stream, after the text. */
  readonly failure?: true;
}

/** A refusal with an HTTP status. */
export interface ProviderRefusal {
  readonly status: number;
  readonly message: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface ProviderFamily {
  readonly name: string;
  readonly connect: (origin: string) => AiSdkLanguageModel;
  /** The events of a streamed answer. */
  readonly events: (reply: ProviderReply) => readonly object[];
  readonly refusal: (refusal: ProviderRefusal) => object;
  /** What the provider answers, in its own words, to a prompt that is too long. */
  readonly tooLong: string;
  /** A setting that makes the model think, if there is one to test. */
  readonly thinking?: AiSdkModelOptions;
}

const anthropicEvents: ProviderFamily["events"] = ({ thought, text, calls = [], end = "stop", usage, failure }) => {
  const events: object[] = [];
  const input = { input_tokens: 60, cache_read_input_tokens: 40, cache_creation_input_tokens: 0, output_tokens: 1 };
  const message = { id: "msg_1", type: "message", role: "assistant", model: "claude-test", content: [] };
  events.push({ type: "message_start", message: { ...message, stop_reason: null, usage: input } });
  let index = 0;
  const block = (start: object, ...deltas: readonly object[]): void => {
    events.push({ type: "content_block_start", index, content_block: start });
    for (const delta of deltas) events.push({ type: "content_block_delta", index, delta });
    events.push({ type: "content_block_stop", index });
    index += 1;
  };
  if (thought !== undefined) {
    block(
      { type: "thinking", thinking: "", signature: "" },
      { type: "thinking_delta", thinking: thought },
      { type: "signature_delta", signature: "sig-of-thought" },
    );
  }
  if (text !== undefined) {
    const half = Math.ceil(text.length / 2);
    const pieces = [text.slice(0, half), text.slice(half)];
    block({ type: "text", text: "" }, ...pieces.map((piece) => ({ type: "text_delta", text: piece })));
  }
  for (const { id, name, arguments: args } of calls) {
    block({ type: "tool_use", id, name, input: {} }, { type: "input_json_delta", partial_json: JSON.stringify(args) });
  }
  if (failure) return [...events, { type: "error", error: { type: "overloaded_error", message: "Overloaded" } }];
  const reasons = { stop: calls.length > 0 ? "tool_use" : "end_turn", length: "max_tokens", filter: "refusal" };
  const told = usage === "none" ? {} : { output_tokens: 30 };
  events.push({ type: "message_delta", delta: { stop_reason: reasons[end], stop_sequence: null }, usage: told });
  return [...events, { type: "message_stop" }];
};

const googleEvents: ProviderFamily["events"] = ({ thought, text, calls = [], end = "stop", usage, failure }) => {
  const events: object[] = [];
  const chunk = (...parts: readonly object[]): void => {
    events.push({ candidates: [{ content: { role: "model", parts }, index: 0 }], modelVersion: "gemini-test" });
  };
  if (thought !== undefined) chunk({ text: thought, thought: true, thoughtSignature: "sig-of-thought" });
  if (text !== undefined) {
    chunk({ text: text.slice(0, 2) });
    chunk({ text: text.slice(2) });
  }
  for (const { name, arguments: args } of calls)
    chunk({ functionCall: { name, args }, thoughtSignature: "sig-of-call" });
  if (failure) return [...events, { error: { code: 503, message: "Overloaded", status: "UNAVAILABLE" } }];
  const reasons = { stop: "STOP", length: "MAX_TOKENS", filter: "SAFETY" };
  const counts = { promptTokenCount: 100, cachedContentTokenCount: 40, candidatesTokenCount: 30, totalTokenCount: 130 };
  const last = { candidates: [{ content: { role: "model", parts: [] }, finishReason: reasons[end], index: 0 }] };
  return [...events, usage === "none" ? last : { ...last, usageMetadata: counts }];
};

const responsesEvents: ProviderFamily["events"] = ({ thought, text, calls = [], end = "stop", failure }) => {
  const response = { id: "resp_1", created_at: 1, model: "gpt-test" };
  const events: object[] = [{ type: "response.created", response }];
  let index = 0;
  const item = (begun: object, deltas: readonly object[], done: object): void => {
    events.push({ type: "response.output_item.added", output_index: index, item: begun });
    for (const delta of deltas) events.push({ output_index: index, ...delta });
    events.push({ type: "response.output_item.done", output_index: index, item: { ...begun, ...done } });
    index += 1;
  };
  if (thought !== undefined) {
    const id = "rs_1";
    const summary = [{ type: "summary_text", text: thought }];
    item(
      { type: "reasoning", id, encrypted_content: "enc-0", summary: [] },
      [{ type: "response.reasoning_summary_text.delta", item_id: id, summary_index: 0, delta: thought }],
      { encrypted_content: "enc-of-thought", summary },
    );
  }
  if (text !== undefined) {
    const id = "msg_1";
    const pieces = [text.slice(0, 2), text.slice(2)];
    item(
      { type: "message", id, role: "assistant", content: [], status: "in_progress" },
      pieces.map((delta) => ({ type: "response.output_text.delta", item_id: id, content_index: 0, delta })),
      { status: "completed", content: [{ type: "output_text", text, annotations: [] }] },
    );
  }
  for (const [at, { id: callId, name, arguments: args }] of calls.entries()) {
    const id = `fc_${at}`;
    const all = JSON.stringify(args);
    item(
      { type: "function_call", id, call_id: callId, name, arguments: "", status: "in_progress" },
      [{ type: "response.function_call_arguments.delta", item_id: id, delta: all }],
      { arguments: all, status: "completed" },
    );
  }
  if (failure) {
    const error = { type: "server_error", code: "server_error", message: "Overloaded", param: null };
    return [...events, { type: "error", sequence_number: 9, error }];
  }
  const usage = {
    input_tokens: 100,
    input_tokens_details: { cached_tokens: 40 },
    output_tokens: 30,
    output_tokens_details: { reasoning_tokens: 0 },
  };
  const reasons = { stop: null, length: { reason: "max_output_tokens" }, filter: { reason: "content_filter" } };
  const type = end === "stop" ? "response.completed" : "response.incomplete";
  return [...events, { type, response: { ...response, incomplete_details: reasons[end], usage } }];
};

const anthropicFamily = {
  events: anthropicEvents,
  refusal: ({ message, status }: ProviderRefusal) => {
    const type = status === 529 ? "overloaded_error" : status === 429 ? "rate_limit_error" : "invalid_request_error";
    return { type: "error", error: { type, message } };
  },
  tooLong: "prompt is too long: 210000 tokens > 200000 maximum",
  thinking: { providerOptions: { anthropic: { thinking: { type: "enabled", budgetTokens: 2_000 } } } },
};

export const providerFamilies: readonly ProviderFamily[] = [
  {
    name: "Anthropic (v4)",
    connect: (origin) => createAnthropic({ baseURL: `${origin}/v1`, apiKey: "key-for-tests" })("claude-test"),
    ...anthropicFamily,
  },
  {
    name: "Anthropic (v3)",
    connect: (origin) => createAnthropicV3({ baseURL: `${origin}/v1`, apiKey: "key-for-tests" })("claude-test"),
    ...anthropicFamily,
  },
  {
    name: "Google (v4)",
    connect: (origin) =>
      createGoogleGenerativeAI({ baseURL: `${origin}/v1beta`, apiKey: "key-for-tests" })("gemini-test"),
    events: googleEvents,
    refusal: ({ message, status }) => ({ error: { code: status, message, status: "FAILED" } }),
    tooLong: "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
  },
  {
    name: "OpenAI Responses (v4)",
    connect: (origin) => createOpenAI({ baseURL: `${origin}/v1`, apiKey: "key-for-tests" }).responses("gpt-5-test"),
    events: responsesEvents,
    refusal: ({ message }) => ({ error: { message, type: "invalid_request_error", code: null, param: null } }),
    tooLong: "Your input exceeds the context window of this model. Please adjust your input and try again.",
  },
];

export interface ProviderServer {
  readonly model: (options?: AiSdkModelOptions) => LanguageModel;
  /** The bodies of all requests. */
  readonly bodies: readonly Readonly<Record<string, unknown>>[];
}

/** A server of one family, which gives these answers in turn, the last one again and again. */
export async function providerServer(
  family: ProviderFamily,
  replies: readonly (ProviderReply | ProviderRefusal)[],
): Promise<ProviderServer> {
  const bodies: Readonly<Record<string, unknown>>[] = [];
  const server = await startRawServer((_request, response, body) => {
    const reply = replies[Math.min(bodies.length, replies.length - 1)] ?? {};
    bodies.push(JSON.parse(body) as Readonly<Record<string, unknown>>);
    if ("status" in reply) {
      response.writeHead(reply.status, { "content-type": "application/json", ...reply.headers });
      response.end(JSON.stringify(family.refusal(reply)));
    } else sendEvents(response, family.events(reply), reply.cut);
  });
  onTestFinished(() => server.stop());
  return { bodies, model: (options) => aiSdkModel(family.connect(server.origin), options) };
}

function sendEvents(response: ServerResponse, events: readonly object[], cut: ProviderReply["cut"]): void {
  response.writeHead(200, { "content-type": "text/event-stream" });
  const lines = events.slice(0, cut?.after).map((event) => `data: ${JSON.stringify(event)}\n\n`);
  if (cut === undefined) response.end(lines.join(""));
  else response.write(lines.join(""), () => cut.how === "broken" && response.destroy());
}
