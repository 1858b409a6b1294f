import { type ExecutableActionObject, initialTransition, transition } from "xstate";
import { type EffectMeta, toolCallMachine } from "../../src/machines/index.ts";
import { declareCall, type EntryBody } from "../../src/state/index.ts";
import { callIdAt, journalOf } from "./bodies.ts";

/**
 * The first call of a round after these entries, computed by pure transitions without an actor. `effects`: the effects that its states
 * started; `running`: the effect that was not stopped.
 */
export function callAfter(...bodies: readonly EntryBody[]) {
  const effects: string[] = [];
  let running: string | undefined;
  const note = (actions: readonly Pick<ExecutableActionObject, "type" | "params">[]): void => {
    for (const { type, params } of actions) {
      if (type === "stopEffect") running = undefined;
      if (type === "startEffect") effects.push((running = (params as EffectMeta).effect));
    }
  };
  let [snapshot, actions] = initialTransition(toolCallMachine, { call: declareCall(callIdAt(0), "look") });
  note(actions);
  for (const entry of journalOf(bodies)) {
    [snapshot, actions] = transition(toolCallMachine, snapshot, entry);
    note(actions);
  }
  return { value: snapshot.value, context: snapshot.context.call, effects, running };
}
