import type { Entry, EntryOf } from "./entry.ts";
import type { CallOutcome } from "./execution.ts";
import type { TextLookup } from "./react-inputs.ts";
import { foldTurn, startTurn } from "./turn-fold.ts";
import type { TurnState } from "./turn-state.ts";

/** The fold of a turn's entries; `undefined` if its first entry is missing. */
export function turnOf(entries: readonly Entry[]): TurnState | undefined {
  let turn: TurnState | undefined;
  for (const entry of entries) {
    if (entry.type === "turn.started") turn = startTurn(entry);
    if (turn) turn = foldTurn(turn, entry);
  }
  return turn;
}

/** The entries of one turn, in order. Default: of the newest turn. */
export function entriesOfTurn(entries: readonly Entry[], turnId?: string): readonly Entry[] {
  const wanted = turnId ?? entries.findLast((entry) => entry.type === "turn.started")?.turnId;
  return wanted === undefined ? [] : entries.filter((entry) => "turnId" in entry && entry.turnId === wanted);
}

/** The entry that ends the newest turn of these entries; `undefined` while the turn is open. */
export function endOfTurn(entries: readonly Entry[]): EntryOf<"turn.ended"> | undefined {
  const last = entries.findLast(({ type }) => type === "turn.started" || type === "turn.ended");
  return last?.type === "turn.ended" ? last : undefined;
}

/** The input of the turn that starts with the first of these entries, as text. */
export function promptOf([first]: readonly Entry[], textOf: TextLookup): string {
  const inputs = first?.type === "turn.started" ? first.inputMessageIds : [];
  return inputs.map(textOf).join("\n");
}

/** The calls that have a result, in the order in which they were settled. */
export function settledCallsOf(
  entries: readonly Entry[],
): { readonly callId: string; readonly name: string; readonly outcome: CallOutcome }[] {
  return entries.flatMap((entry) =>
    entry.type === "tool.settled" ? [{ callId: entry.callId, name: entry.name, outcome: entry.outcome }] : [],
  );
}
