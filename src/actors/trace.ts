import {
  type Entry,
  type Json,
  type Message,
  stepsOf,
  textOf,
  type TraceEntry,
  turnIdOf,
  type TurnState,
  type Usage,
} from "../state/index.ts";
import type { Host } from "./host.ts";

/** The trace of the open turn, derived from its entries (row H5). */
export function traceOf(host: Host, turnId: string): TraceEntry[] {
  const { entries, prompt } = host.memory(turnId);
  return traceEntriesOf(entries, prompt, (id) => host.message(id));
}

/**
 * How full the model's window was after the last answer, 0 to 100 and beyond; null when its size is not known, or nothing
 * was answered yet.
 */
export function contextPercentOf(host: Host, turn: TurnState | undefined): number | null {
  const { contextWindow } = host.definition.model;
  if (!turn) return null;
  const before = turn.number > 1 ? host.turn(turnIdOf(host.identity.agentId, turn.number - 1)) : undefined;
  return percentOfWindow(turn, contextWindow) ?? (before ? percentOfWindow(before, contextWindow) : null);
}

/** After the turn's last answer; null before one, and where the window's size is not known. */
export function percentOfWindow(turn: TurnState, contextWindow: number | undefined): number | null {
  const usage = lastUsageOf(turn);
  if (!usage || contextWindow === undefined) return null;
  return ((usage.inputTokens + usage.outputTokens) / contextWindow) * 100;
}

function lastUsageOf(turn: TurnState): Usage | undefined {
  return stepsOf(turn.execution).findLast(({ inference }) => inference !== null)?.inference?.usage;
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
