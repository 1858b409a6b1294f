// The chat API of Cohere (v2): server-sent events about the parts of a message.
import { halves, serverEvent, unusableCount, wireUsage, type WireFormat } from "./wire-format.ts";

interface StreamEvent {
  readonly type: string;
  readonly [field: string]: unknown;
}

export const cohereFormat: WireFormat = {
  contentType: "text/event-stream",
  ends: ["stop", "length"],
  events: ({ thought, text, calls = [], end = "stop", usage, error, unknown }) => {
    const start = { role: "assistant", content: [], tool_plan: "", tool_calls: [], citations: [] };
    const events: StreamEvent[] = [{ type: "message-start", id: "msg_1", delta: { message: start } }];
    let index = 0;
    const content = (type: "text" | "thinking", whole: string | undefined): void => {
      if (whole === undefined) return;
      events.push({ type: "content-start", index, delta: { message: { content: { type, [type]: "" } } } });
      for (const piece of halves(whole)) {
        events.push({ type: "content-delta", index, delta: { message: { content: { [type]: piece } } } });
      }
      events.push({ type: "content-end", index });
      index += 1;
    };
    content("thinking", thought);
    content("text", text);
    for (const { id, name, arguments: args } of calls) {
      const begun = { id, type: "function", function: { name, arguments: "" } };
      events.push({ type: "tool-call-start", index, delta: { message: { tool_calls: begun } } });
      for (const piece of halves(JSON.stringify(args))) {
        const delta = { message: { tool_calls: { function: { arguments: piece } } } };
        events.push({ type: "tool-call-delta", index, delta });
      }
      events.push({ type: "tool-call-end", index });
      index += 1;
    }
    if (unknown) events.push({ type: "note-of-next-year", note: "new" });
    const reason = end === "length" ? "MAX_TOKENS" : calls.length > 0 ? "TOOL_CALL" : "COMPLETE";
    const tokens =
      usage === "unusable"
        ? { input_tokens: unusableCount.huge, output_tokens: unusableCount.negative }
        : { input_tokens: wireUsage.input, output_tokens: wireUsage.output };
    // The format has no answer without usage: zeros stand for it.
    const told = usage === "none" ? { input_tokens: 0, output_tokens: 0 } : tokens;
    const delta =
      error === undefined
        ? { finish_reason: reason, usage: { billed_units: told, tokens: told } }
        : { finish_reason: "ERROR", error, usage: { billed_units: tokens, tokens } };
    events.push({ type: "message-end", id: "msg_1", delta });
    return events.map((one) => serverEvent(one, one.type));
  },
  refusal: ({ message }) => ({ body: { id: "req_1", message } }),
};
