import { expect } from "vitest";
import type { AnyMachineSnapshot, AnyStateMachine, EventObject } from "xstate";
import { bothBeginnings, bothWays } from "../support/both-ways.ts";
import { nameOf } from "./explored.ts";

/** Where these events lead, compared at each of them; undefined from the first on that both ways refuse with an error. */
export function walk(
  machine: AnyStateMachine,
  input: unknown,
  events: readonly EventObject[],
): AnyMachineSnapshot | undefined {
  const begun = bothBeginnings(machine, input);
  expect(begun.compiled).toEqual(begun.interpreted);
  let at = begun.next;
  for (const event of events) {
    if (!at) return undefined;
    const step = bothWays(machine, at, event);
    expect(step.compiled, `${nameOf(at.value)}, ${event.type}`).toEqual(step.interpreted);
    at = step.next;
  }
  return at;
}

/** A copy of the machine that names the events of which XState itself makes the step. */
export function telling(machine: AnyStateMachine, left: string[]): AnyStateMachine {
  const copy = machine.provide({});
  const transition = copy.transition.bind(copy);
  const getInitialSnapshot = copy.getInitialSnapshot.bind(copy);
  copy.transition = (snapshot, event: EventObject, scope) => {
    left.push(event.type);
    return transition(snapshot, event, scope);
  };
  copy.getInitialSnapshot = (scope, input) => {
    left.push("xstate.init");
    return getInitialSnapshot(scope, input);
  };
  return copy;
}
