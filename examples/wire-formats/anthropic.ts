// The Messages API of Anthropic: server-sent events with content blocks.
import { halves, serverEvent, unusableCount, wireUsage, type WireFormat } from "./wire-format.ts";

interface StreamEvent {
  readonly type: string;
  readonly [field: string]: unknown;
}

const stopReasons = { stop: "end_turn", length: "max_tokens", filter: "refusal", refusal: "refusal" } as const;
const errorTypes: Readonly<Record<number, string>> = {
  401: "authentication_error",
  413: "request_too_large",
  429: "rate_limit_error",
  500: "api_error",
  529: "overloaded_error",
};

export const anthropicFormat: WireFormat = {
  contentType: "text/event-stream",
  ends: ["stop", "length", "filter", "refusal"],
  events: ({ thought, text, calls = [], end = "stop", usage, error, unknown, executed }) => {
    const events: StreamEvent[] = [];
    const input = { input_tokens: wireUsage.input - wireUsage.cached, cache_read_input_tokens: wireUsage.cached };
    const begun = usage === "unusable" ? { input_tokens: unusableCount.huge } : usage === "none" ? {} : input;
    events.push(
      {
        type: "message_start",
        message: {
          id: "msg_1",
          type: "message",
          role: "assistant",
          model: "claude-test",
          content: [],
          stop_reason: null,
          usage: { input_tokens: 0, output_tokens: usage === undefined ? 1 : 0, ...begun },
        },
      },
      { type: "ping" },
    );
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
        ...halves(thought).map((piece) => ({ type: "thinking_delta", thinking: piece })),
        { type: "signature_delta", signature: `signature of ${thought}` },
      );
    }
    if (text !== undefined) {
      block({ type: "text", text: "" }, ...halves(text).map((piece) => ({ type: "text_delta", text: piece })));
    }
    if (executed !== undefined) {
      block(
        { type: "server_tool_use", id: "srvtoolu_1", name: executed, input: {} },
        { type: "input_json_delta", partial_json: '{"query":"Eiger"}' },
      );
    }
    for (const { id, name, arguments: args } of calls) {
      const pieces = halves(JSON.stringify(args));
      block(
        { type: "tool_use", id, name, input: {} },
        ...pieces.map((piece) => ({ type: "input_json_delta", partial_json: piece })),
      );
    }
    if (unknown) events.push({ type: "message_note", note: "of next year" });
    if (error !== undefined) {
      events.push({ type: "error", error: { type: "overloaded_error", message: error } });
      return events.map((event) => serverEvent(event, event.type));
    }
    const reason = end === "stop" && calls.length > 0 ? "tool_use" : stopReasons[end];
    const output = usage === "unusable" ? unusableCount.negative : usage === "none" ? 0 : wireUsage.output;
    events.push(
      {
        type: "message_delta",
        delta: { stop_reason: reason, stop_sequence: null },
        usage: { output_tokens: output },
      },
      { type: "message_stop" },
    );
    return events.map((event) => serverEvent(event, event.type));
  },
  refusal: ({ status, message, type = errorTypes[status] ?? "invalid_request_error" }) => ({
    body: { type: "error", error: { type, message }, request_id: "req_1" },
    headers: { "request-id": "req_1" },
  }),
};
