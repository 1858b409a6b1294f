import { type EntryOf, type StoredError, textOf } from "../state/index.ts";
import { argumentsTextOf } from "./call-request.ts";
import type { Host } from "./host.ts";

/** One call with its result, as hooks see it. */
export interface RoundResult {
  readonly call: { readonly callId: string; readonly name: string; readonly arguments: string };
  readonly outcome: EntryOf<"tool.settled">["outcome"];
  /** What the model is told. */
  readonly text: string;
  /** Milliseconds from its start. */
  readonly durationMs: number;
  readonly error: StoredError | null;
}

/** The results of the round that has just ended, in the order of its calls. */
export function resultsOfRound(host: Host, turnId: string): RoundResult[] {
  const calls = host.turn(turnId)?.execution.currentStep?.toolExecutions ?? [];
  return calls.flatMap(({ callId }) => resultOfCall(host, turnId, callId) ?? []);
}

export function resultOfCall(host: Host, turnId: string, callId: string): RoundResult | undefined {
  const settled = host
    .memory(turnId)
    .entries.findLast(
      (entry): entry is EntryOf<"tool.settled"> => entry.type === "tool.settled" && entry.callId === callId,
    );
  if (!settled) return undefined;
  const { name, outcome, messageId, durationMs, error } = settled;
  const text = textOf(host.message(messageId)?.content ?? "");
  return { call: { callId, name, arguments: argumentsTextOf(host, callId) }, outcome, text, durationMs, error };
}
