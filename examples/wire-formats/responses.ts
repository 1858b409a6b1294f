// The Responses API, as OpenAI and xAI document it: server-sent events about items.
import { halves, serverEvent, unusableCount, wireUsage, type WireFormat, type WireReply } from "./wire-format.ts";

interface ResponsesDialect {
  /** Whether the model's words of a refusal are a part of their own. */
  readonly hasRefusals: boolean;
  readonly refusal: WireFormat["refusal"];
}

interface StreamEvent {
  readonly type: string;
  readonly [field: string]: unknown;
}

function responsesFormat({ hasRefusals, refusal }: ResponsesDialect): WireFormat {
  return {
    contentType: "text/event-stream",
    ends: hasRefusals ? ["stop", "length", "filter", "refusal"] : ["stop", "length", "filter"],
    events: responsesEvents,
    refusal,
  };
}

function responsesEvents(reply: WireReply): readonly string[] {
  const { thought, text, calls = [], end = "stop", error, unknown, executed } = reply;
  const response = { id: "resp_1", object: "response", created_at: 1, model: "model-test", output: [] };
  const events: StreamEvent[] = [];
  events.push({ type: "response.created", response: { ...response, status: "in_progress" } });
  let index = 0;
  const item = (begun: object, deltas: readonly StreamEvent[], done: object): void => {
    events.push({ type: "response.output_item.added", output_index: index, item: begun });
    for (const delta of deltas) events.push({ output_index: index, ...delta });
    events.push({ type: "response.output_item.done", output_index: index, item: { ...begun, ...done } });
    index += 1;
  };
  if (thought !== undefined) {
    const at = { item_id: "rs_1", summary_index: 0 };
    const part = { type: "summary_text", text: thought };
    item(
      { type: "reasoning", id: "rs_1", summary: [], status: "in_progress" },
      [
        { type: "response.reasoning_summary_part.added", ...at, part: { ...part, text: "" } },
        ...halves(thought).map((delta) => ({ type: "response.reasoning_summary_text.delta", ...at, delta })),
        { type: "response.reasoning_summary_text.done", ...at, text: thought },
        { type: "response.reasoning_summary_part.done", ...at, part },
      ],
      { summary: [part], encrypted_content: `signature of ${thought}`, status: "completed" },
    );
  }
  if (text !== undefined) {
    const at = { item_id: "msg_1", content_index: 0 };
    const isRefusal = end === "refusal";
    const type = isRefusal ? "response.refusal.delta" : "response.output_text.delta";
    const part = isRefusal ? { type: "refusal", refusal: text } : { type: "output_text", text, annotations: [] };
    item(
      { type: "message", id: "msg_1", role: "assistant", content: [], status: "in_progress" },
      [
        ...halves(text).map((delta) => ({ type, ...at, delta })),
        isRefusal
          ? { type: "response.refusal.done", ...at, refusal: text }
          : { type: "response.output_text.done", ...at, text },
      ],
      { status: "completed", content: [part] },
    );
  }
  if (executed !== undefined) {
    const action = { type: "search", query: "Eiger" };
    item({ type: `${executed}_call`, id: "ws_1", status: "in_progress", action }, [], { status: "completed" });
  }
  for (const [at, call] of calls.entries()) {
    const id = `fc_${at}`;
    const all = JSON.stringify(call.arguments);
    item(
      { type: "function_call", id, call_id: call.id, name: call.name, arguments: "", status: "in_progress" },
      [
        ...halves(all).map((delta) => ({ type: "response.function_call_arguments.delta", item_id: id, delta })),
        { type: "response.function_call_arguments.done", item_id: id, arguments: all },
      ],
      { arguments: all, status: "completed" },
    );
  }
  if (unknown) events.push({ type: "response.note_of_next_year", note: "new" });
  events.push(
    error === undefined
      ? lastEvent(response, reply)
      : { type: "error", code: "server_error", message: error, param: null },
  );
  return events.map((event, number) => serverEvent({ ...event, sequence_number: number }, event.type));
}

function lastEvent(response: object, { end = "stop", usage }: WireReply): StreamEvent {
  const reason = { length: "max_output_tokens", filter: "content_filter" }[end as string];
  const isComplete = reason === undefined;
  return {
    type: isComplete ? "response.completed" : "response.incomplete",
    response: {
      ...response,
      status: isComplete ? "completed" : "incomplete",
      incomplete_details: isComplete ? null : { reason },
      ...(usage === "none" ? {} : { usage: counts(usage) }),
    },
  };
}

function counts(usage: "unusable" | undefined): object {
  if (usage === "unusable") return { input_tokens: unusableCount.huge, output_tokens: unusableCount.negative };
  return {
    input_tokens: wireUsage.input,
    input_tokens_details: { cached_tokens: wireUsage.cached },
    output_tokens: wireUsage.output,
    output_tokens_details: { reasoning_tokens: wireUsage.reasoning },
    total_tokens: wireUsage.input + wireUsage.output,
  };
}

const openaiTypes: Readonly<Record<number, string>> = { 429: "rate_limit_exceeded", 500: "server_error" };

export const openaiResponsesFormat = responsesFormat({
  hasRefusals: true,
  refusal: ({ status, message, type = openaiTypes[status] ?? "invalid_request_error" }) => ({
    body: { error: { message, type, code: null, param: null } },
    headers: { "x-request-id": "req_1" },
  }),
});

export const xaiFormat = responsesFormat({
  hasRefusals: false,
  refusal: ({ message, type = "Client specified an invalid argument" }) => ({ body: { code: type, error: message } }),
});
