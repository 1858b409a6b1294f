import { type EntryBody, foldTurn, startTurn, type TurnState, turnStateSchema } from "../../src/state/index.ts";
import { at, journalOf, turnStarted } from "../machines/bodies.ts";

export type Started = Partial<Omit<Extract<EntryBody, { type: "turn.started" }>, "type">>;

/** The fold of a turn that starts like this, after a JSON round trip. */
export function foldOf(parts: Started, ...bodies: readonly EntryBody[]): TurnState {
  const first = turnStarted(parts);
  const [, ...rest] = journalOf([first, ...bodies]);
  const folded = rest.reduce((turn, entry) => foldTurn(turn, entry), startTurn(at(first, 1)));
  return turnStateSchema.parse(JSON.parse(JSON.stringify(folded)));
}
