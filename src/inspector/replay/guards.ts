import type { AnyTransitionDefinition } from "xstate";
import type { MachineFold } from "../../runtime/index.ts";
import type { Entry } from "../../state/index.ts";

type HeardBefore = NonNullable<ReturnType<MachineFold["heardBefore"]>>;

/**
 * The name of the guard that chose the transition of an entry; null: it had none. Guards are pure functions of the state in
 * which the machine heard the entry, so they are asked again. Guards that had to hold together are joined by ` & `, as in
 * the charts.
 */
export function guardOf({ machine, snapshot }: HeardBefore, entry: Entry, to: readonly string[]): string | null {
  const chosen = machine.getTransitionData(snapshot, entry).filter(({ target }) => target !== undefined);
  // A transition that takes no entry follows one that only records it.
  const made = chosen.length > 0 ? chosen : eventless(snapshot).filter((one) => leadsTo(one, to));
  return made.map(({ guard }) => guardName(guard)).find((name) => name !== "") ?? null;
}

function eventless({ _nodes }: HeardBefore["snapshot"]): AnyTransitionDefinition[] {
  return _nodes.flatMap(({ always }) => always ?? []);
}

function leadsTo({ target = [] }: AnyTransitionDefinition, to: readonly string[]): boolean {
  return target.some(({ path }) => to.includes(path.join(".")));
}

/** `and([…])` makes a function that has the guards which it joins. */
function guardName(guard: unknown): string {
  if (typeof guard === "string") return guard;
  if (typeof guard === "object" && guard !== null && "type" in guard) return String(guard.type);
  const { guards = [] } = (guard ?? {}) as { readonly guards?: readonly unknown[] };
  return guards.map(guardName).join(" & ");
}
