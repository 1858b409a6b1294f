import { type Entry, type Json, type Message, type TraceEntry, textOf } from "../state/index.ts";
import type { Host } from "./host.ts";

/** The trace of the open turn, derived from its entries: there is no second record (row H5). */
export function traceOf(host: Host, turnId: string): TraceEntry[] {
  const { entries, prompt } = host.memory(turnId);
  return traceEntriesOf(entries, prompt, (id) => host.message(id));
}

export function traceEntriesOf(
  entries: readonly Entry[],
  prompt: string,
  message: (messageId: string) => Message | undefined,
): TraceEntry[] {
  const gated = new Map<string, Json>();
  const startedAt = new Map<string, number>();
  return entries.flatMap((entry): TraceEntry[] => {
    switch (entry.type) {
      case "turn.started":
        return [{ type: "user_input", turnId: entry.turnId, step: 0, at: entry.at, turn: entry.number, prompt }];
      case "model.responded": {
        const { turnId, step, model, durationMs, calls, usage, costMicros } = entry;
        return [
          {
            type: "llm_call",
            turnId,
            step,
            at: entry.at - durationMs,
            model,
            durationMs,
            toolCallsCount: calls.length,
            usage: { ...usage, costMicros },
          },
        ];
      }
      case "call.gated":
        gated.set(entry.callId, entry.arguments);
        startedAt.set(entry.callId, entry.at);
        return [];
      case "tool.settled": {
        const { turnId, step, callId, name, outcome, durationMs, error } = entry;
        const text = textOf(message(entry.messageId)?.content ?? "");
        const status = outcome === "success" || outcome === "not_found" ? outcome : "error";
        return [
          {
            type: "tool_execution",
            turnId,
            step,
            at: startedAt.get(callId) ?? entry.at,
            callId,
            name,
            arguments: gated.get(callId) ?? null,
            status,
            ...(status === "success" ? { result: text } : { error: text }),
            ...(error ? { errorType: error.code } : {}),
            durationMs,
          },
        ];
      }
      default:
        return [];
    }
  });
}
