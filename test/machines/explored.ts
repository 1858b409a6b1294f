import type { AnyStateMachine } from "xstate";
import { getShortestPaths } from "xstate/graph";
import type { Entry } from "../../src/state/index.ts";
import { nodesOf } from "../architecture/machine-walk.ts";

/** The entries on a shortest path to one state of a machine, and the state's dotted name. */
export interface Path {
  readonly entries: readonly Entry[];
  readonly end: string;
}

export interface Explored {
  readonly value: unknown;
  readonly context: unknown;
}

/** The entries to send, their legal order, and the data that tells two states apart. */
export interface Exploration {
  readonly events: readonly Entry[];
  readonly isLegal: (state: Explored, entry: Entry) => boolean;
  readonly stateKey: (state: Explored) => unknown;
  readonly input?: unknown;
}

/** Shortest paths to every state (value and context) that entries in a legal order reach. */
export function pathsOf(machine: AnyStateMachine, { events, isLegal, stateKey, input }: Exploration): Path[] {
  const paths = getShortestPaths(machine, {
    events: [...events],
    input,
    filterEvents: (state: Explored, entry: Entry) => isLegal(state, entry),
    serializeState: (state: Explored) => JSON.stringify(stateKey(state)),
    serializeEvent: (entry: { readonly type: string }) => JSON.stringify(entry),
  } as Parameters<typeof getShortestPaths>[1]);
  return paths.map(({ state, steps }) => ({
    entries: steps
      .map(({ event }) => event as unknown as Entry)
      .filter(({ type }) => type !== ("xstate.init" as string)),
    end: nameOf((state as unknown as Explored).value),
  }));
}

function idOf(entries: readonly Entry[]): string {
  return entries.map(({ seq }) => seq).join();
}

/** The paths that are not a prefix of another path. */
export function longestOf(paths: readonly Path[]): Path[] {
  const beginnings = new Set(paths.flatMap(({ entries }) => entries.map((_, count) => idOf(entries.slice(0, count)))));
  return paths.filter(({ entries }) => !beginnings.has(idOf(entries)));
}

/** `thinking.calling` for `{ thinking: "calling" }`. */
export function nameOf(value: unknown): string {
  if (typeof value === "string") return value;
  return Object.entries(value as object)
    .map(([parent, child]) => `${parent}.${nameOf(child)}`)
    .join();
}

/** The names of all leaf states. */
export function leavesOf(machine: AnyStateMachine): string[] {
  return nodesOf(machine.root)
    .filter((node) => Object.keys(node.states).length === 0)
    .map((node) => node.path.join("."));
}
