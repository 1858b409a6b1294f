// The chat API of Ollama: one JSON object a line.
import { halves, unusableCount, wireUsage, type WireFormat } from "./wire-format.ts";

export const ollamaFormat: WireFormat = {
  contentType: "application/x-ndjson",
  ends: ["stop", "length"],
  events: ({ thought, text, calls = [], end = "stop", usage, error, unknown }) => {
    const lines: object[] = [];
    const line = (message: object, rest: object = { done: false }): void => {
      const whole = { role: "assistant", content: "", ...message };
      lines.push({ model: "llama-test", created_at: "2026-01-01T00:00:00Z", message: whole, ...rest });
    };
    for (const thinking of halves(thought)) line({ thinking });
    for (const content of halves(text)) line({ content });
    for (const { id, name, arguments: args } of calls) {
      line({ tool_calls: [{ id, function: { name, arguments: args } }] });
    }
    if (unknown) line({ note_of_next_year: "new" });
    if (error === undefined)
      line({}, { done: true, done_reason: end === "length" ? "length" : "stop", ...counts(usage) });
    else lines.push({ error });
    return lines.map((one) => `${JSON.stringify(one)}\n`);
  },
  refusal: ({ message }) => ({ body: { error: message } }),
};

function counts(usage: "none" | "unusable" | undefined): object {
  if (usage === "none") return {};
  if (usage === "unusable") return { prompt_eval_count: unusableCount.huge, eval_count: unusableCount.negative };
  return { prompt_eval_count: wireUsage.input, eval_count: wireUsage.output, total_duration: 5, load_duration: 1 };
}
