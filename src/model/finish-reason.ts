import type { FinishReason } from "../state/index.ts";

/** How an answer ended; `too_long`: prompt and answer together filled the model's window. */
export type AnswerEnd = Exclude<FinishReason, "tool_calls" | "unknown"> | "too_long";

/** The servers' finish reasons, grouped by meaning. Every other reason means that the server broke off the answer. */
const reasonsOf: Readonly<Record<AnswerEnd, readonly string[]>> = {
  stop: [
    "stop",
    "tool_calls",
    "function_call",
    "tool_call",
    "tool_use",
    "end_turn",
    "stop_sequence",
    "eos",
    "eos_token",
    "complete",
    "completed",
  ],
  length: ["length", "max_tokens", "max_output_tokens", "max_completion_tokens", "model_length", "token_limit"],
  content_filter: [
    "content_filter",
    "content_filtered",
    "guardrail_intervened",
    "refusal",
    "sensitive",
    "safety",
    "image_safety",
    "recitation",
    "prohibited_content",
    "blocklist",
    "spii",
  ],
  too_long: ["model_context_window_exceeded", "context_length_exceeded"],
};

const ends: ReadonlyMap<string, AnswerEnd> = new Map(
  (Object.entries(reasonsOf) as [AnswerEnd, readonly string[]][]).flatMap(([end, reasons]) =>
    reasons.map((reason) => [reason, end] as const),
  ),
);

/** How an answer with this finish reason ended; `undefined` if the server broke it off. */
export function answerEnd(finishReason: string): AnswerEnd | undefined {
  return ends.get(finishReason.toLowerCase().replaceAll("-", "_"));
}

/** Why an answer is not complete. Another attempt helps only if the kind is `incomplete`. */
export interface BrokenAnswer {
  readonly kind: "incomplete" | "context_length";
  readonly message: string;
}

/** What is wrong with an answer that has this finish reason; `undefined` if the answer is complete. */
export function brokenBy(finishReason: string): BrokenAnswer | undefined {
  const end = answerEnd(finishReason);
  const shown = `the finish reason is "${finishReason.slice(0, 100)}".`;
  if (end === undefined) return { kind: "incomplete", message: `The model server broke off its answer: ${shown}` };
  if (end !== "too_long") return undefined;
  return { kind: "context_length", message: `The prompt and the answer are too long for the model: ${shown}` };
}
