import type { Transition } from "../feed/wire.ts";
import type { JsonValue } from "./untrusted.tsx";

export type MachineName = Transition["machine"];

/** The path of the innermost state of a value: `busy.working`. */
export function pathOfValue(value: unknown): string {
  if (typeof value === "string") return value;
  if (typeof value !== "object" || value === null) return "";
  const [parent = "", inner] = Object.entries(value as Record<string, JsonValue>)[0] ?? [];
  const rest = pathOfValue(inner);
  return rest === "" ? parent : `${parent}.${rest}`;
}

export interface Visit {
  readonly count: number;
  /** Milliseconds spent in the state until the moment. */
  readonly ms: number;
}

/** One machine at the moment: its state, its transitions and its visited states. */
export interface MachineMoment {
  readonly id: string;
  readonly path: string;
  readonly last: Transition | undefined;
  /** Transitions of this machine, oldest first. */
  readonly past: readonly Transition[];
  /** Visits by path, including parent states. */
  readonly visits: ReadonlyMap<string, Visit>;
}

/** The machines of an agent that exist at the moment. */
export interface AgentMachineMoments {
  readonly agent: MachineMoment | undefined;
  readonly turn: MachineMoment | undefined;
  readonly calls: readonly MachineMoment[];
}

/** `until`: number of the agent's last entry at the moment; `now`: the time of the moment. */
export function machinesAt(transitions: readonly Transition[], until: number, now: number): AgentMachineMoments {
  const past = transitions.filter(({ seq }) => seq <= until);
  const turn = past.findLast(({ machine }) => machine === "turn");
  const agent = past.findLast(({ machine }) => machine === "agent");
  const byCall = new Map<string, Transition[]>();
  for (const transition of past) {
    if (transition.machine !== "toolCall" || !transition.id.startsWith(`${turn?.id}:`)) continue;
    const known = byCall.get(transition.id);
    if (known) known.push(transition);
    else byCall.set(transition.id, [transition]);
  }
  const of = (name: MachineName, id: string): Transition[] =>
    past.filter((one) => one.machine === name && one.id === id);
  return {
    agent: agent && momentOf(agent.id, of("agent", agent.id), now),
    turn: turn && momentOf(turn.id, of("turn", turn.id), now),
    calls: [...byCall].map(([id, own]) => momentOf(id, own, now)),
  };
}

function momentOf(id: string, past: readonly Transition[], now: number): MachineMoment {
  const last = past.at(-1);
  const visits = new Map<string, { count: number; ms: number }>();
  for (const [index, { from, to, at }] of past.entries()) {
    // The machine's first state is the origin of its first transition.
    const before = index === 0 ? "" : pathOfValue(from);
    const path = pathOfValue(to);
    const ms = Math.max(0, (past[index + 1]?.at ?? now) - at);
    for (const state of pathsTo(path)) {
      const visit = visits.get(state) ?? { count: 0, ms: 0 };
      visit.ms += ms;
      if (!isWithin(before, state) || state === path) visit.count += 1;
      visits.set(state, visit);
    }
  }
  return { id, path: pathOfValue(last?.to ?? ""), last, past, visits };
}

/** `busy.working`: `busy` and `busy.working`. */
export function pathsTo(path: string): string[] {
  const parts = path.split(".");
  return parts.map((_part, index) => parts.slice(0, index + 1).join("."));
}

export function isWithin(path: string, state: string): boolean {
  return path === state || path.startsWith(`${state}.`);
}
