import { initialTransition, transition } from "xstate";
import { toolCallMachine } from "../../src/machines/index.ts";
import { declareCall, type EntryBody } from "../../src/state/index.ts";
import { callIdAt, journalOf } from "./bodies.ts";

/** The first call of a round after these entries, by pure transitions: no actor is started. */
export function callAfter(...bodies: readonly EntryBody[]) {
  let [snapshot] = initialTransition(toolCallMachine, { call: declareCall(callIdAt(0), "look") });
  for (const entry of journalOf(bodies)) [snapshot] = transition(toolCallMachine, snapshot, entry);
  return snapshot;
}
