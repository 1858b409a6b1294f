import { initialTransition, transition } from "xstate";
import { turnMachine } from "../../src/machines/index.ts";
import type { EntryBody } from "../../src/state/index.ts";
import { at, journalOf, turnStarted } from "./bodies.ts";

/** The turn after these entries, computed by pure transitions without an actor. Adds `turn.started` if the entries lack it. */
export function turnAfter(...bodies: readonly EntryBody[]) {
  const [first, ...rest] = bodies;
  const started = turnStarted(first?.type === "turn.started" ? first : {});
  const journal = journalOf([started, ...(first?.type === "turn.started" ? rest : bodies)]);
  let [snapshot] = initialTransition(turnMachine, { entry: at(started, 1) });
  for (const entry of journal) [snapshot] = transition(turnMachine, snapshot, entry);
  const { value, children, context } = snapshot;
  return { value, children, context: context.turn };
}
