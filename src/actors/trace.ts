import { stepsOf, type TraceEntry, traceEntriesOf, type TurnState, turnIdOf, type Usage } from "../state/index.ts";
import type { Host } from "./host.ts";

/** The trace of the open turn, derived from its entries: there is no second record (row H5). */
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

/** As its turn's last answer tells; null before one, and where the window's size is not known. */
export function percentOfWindow(turn: TurnState, contextWindow: number | undefined): number | null {
  const usage = lastUsageOf(turn);
  if (!usage || contextWindow === undefined) return null;
  return ((usage.inputTokens + usage.outputTokens) / contextWindow) * 100;
}

function lastUsageOf(turn: TurnState): Usage | undefined {
  return stepsOf(turn.execution).findLast(({ inference }) => inference !== null)?.inference?.usage;
}
