import type { AnyStateMachine, AnyStateNode } from "xstate";

/**
 * The reasons why a machine cannot be folded from a journal, as one line each: `state: reason`. Empty if there are none.
 * Reported: transitions on `xstate.done.*` and `xstate.error.*` (`onDone`, `onError`, and wildcards that match them),
 * `after` and other delays, and actors that `setup({ actors })` does not name. What runs inside `assign` or
 * `enqueueActions` is code and cannot be checked.
 */
export function machineFaults(machine: AnyStateMachine): readonly string[] {
  const actorNames = Object.keys(machine.implementations.actors);
  const faults = nodesOf(machine.root).flatMap((node) => [
    ...[...node.transitions.keys()].flatMap((type) => eventFaults(node.id, type)),
    ...invokedSources(node).flatMap((source) => actorFaults(node.id, "invokes", source, actorNames)),
    ...actionsOf(node).flatMap((action) => actionFaults(node.id, action, actorNames)),
  ]);
  for (const [name, action] of Object.entries(machine.implementations.actions)) {
    faults.push(...actionFaults(`action "${name}"`, action, actorNames));
  }
  return faults;
}

/** Every state of a machine, its root first. */
export function nodesOf(node: AnyStateNode): readonly AnyStateNode[] {
  return [node, ...Object.values(node.states).flatMap((child) => nodesOf(child))];
}

function eventFaults(place: string, type: string): readonly string[] {
  if (type.startsWith("xstate.after.")) return [`${place}: waits with "after" (${type}); a delay is lost on restoring`];
  // XState passes done and error events to wildcards too.
  if (!/^(\*$|xstate\.\*$|xstate\.(done|error)\b)/.test(type)) return [];
  return [`${place}: has a transition on "${type}"; outcomes come as entries of the journal`];
}

/** As written: `node.invoke` gives an inline actor a generated name. */
function invokedSources(node: AnyStateNode): readonly unknown[] {
  const invoke: unknown = node.config.invoke ?? [];
  return (Array.isArray(invoke) ? invoke : [invoke]).map((one: unknown) => fieldOf(one, "src") ?? one);
}

function actionsOf(node: AnyStateNode): readonly unknown[] {
  const transitions = [...node.transitions.values(), node.always ?? []].flat();
  const initial: readonly unknown[] = node.config.initial === undefined ? [] : node.initial.actions;
  return [...node.entry, ...node.exit, ...initial, ...transitions.flatMap((transition) => transition.actions)];
}

function actionFaults(place: string, action: unknown, actorNames: readonly string[]): readonly string[] {
  const type = fieldOf(action, "type");
  if (type === "xstate.spawnChild") return actorFaults(place, "spawns", fieldOf(action, "src"), actorNames);
  const delay = fieldOf(action, "delay");
  if (typeof type !== "string" || !type.startsWith("xstate.") || delay === undefined) return [];
  // The timer behind an `after`, which is reported with its transition.
  if (String(fieldOf(action, "id")).startsWith("xstate.after.")) return [];
  return [`${place}: ${type.slice("xstate.".length)} with a delay; a delay is lost on restoring`];
}

function actorFaults(place: string, verb: string, source: unknown, actorNames: readonly string[]): readonly string[] {
  if (typeof source !== "string") return [`${place}: ${verb} an inline actor; name it in setup({ actors })`];
  return actorNames.includes(source) ? [] : [`${place}: ${verb} "${source}", which setup({ actors }) does not name`];
}

/** Built-in actions are functions with fields that XState's types omit. */
function fieldOf(value: unknown, field: string): unknown {
  if ((typeof value !== "object" && typeof value !== "function") || value === null) return undefined;
  return (value as Readonly<Record<string, unknown>>)[field];
}
