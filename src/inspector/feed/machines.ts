import { isDeepStrictEqual } from "node:util";
import { MachineFold } from "../../runtime/index.ts";
import type { Json } from "../../state/index.ts";
import type { AgentMachines, Transition, TransitionPage } from "./answers.ts";
import { journalOf, type PlacedEntry } from "./agent-journal.ts";
import type { RunSource } from "./source.ts";

const TRANSITIONS_AT_A_TIME = 500;

interface Folded {
  readonly fold: MachineFold;
  readonly transitions: Transition[];
}

/** The states of an agent's machines when all rows up to a cursor are folded; null: all there are. */
export async function machinesAt(source: RunSource, agentId: string, at: number | null): Promise<AgentMachines> {
  const { entries } = await journalOf(source, agentId, at);
  const { fold, transitions } = folded(agentId, entries);
  const { agent, turn, calls } = fold.values;
  const names = new Map(
    entries
      .flatMap(({ entry }) => (entry.type === "model.responded" ? entry.calls : []))
      .map((call) => [call.callId, call.name]),
  );
  return {
    agentId,
    cursor: entries.at(-1)?.cursor ?? 0,
    agent: { value: agent as Json },
    turn: fold.turn ? { turnId: fold.turn.turnId, value: turn as Json } : null,
    calls: Object.entries(calls).map(([callId, value]) => ({
      callId,
      name: names.get(callId) ?? "",
      value: value as Json,
    })),
    last: transitions.at(-1) ?? null,
  };
}

/** The transitions of an agent's machines, oldest first. */
export async function transitionPage(source: RunSource, agentId: string, after?: string): Promise<TransitionPage> {
  const { entries } = await journalOf(source, agentId);
  const { transitions } = folded(agentId, entries);
  const start = Number(after ?? 0);
  const end = start + TRANSITIONS_AT_A_TIME;
  return { items: transitions.slice(start, end), next: end < transitions.length ? String(end) : null };
}

function folded(agentId: string, entries: readonly PlacedEntry[]): Folded {
  const fold = new MachineFold(null);
  const transitions: Transition[] = [];
  let before = fold.values;
  for (const { cursor, entry } of entries) {
    const turnBefore = fold.turn?.turnId;
    fold.apply(entry);
    const after = fold.values;
    const at = { cursor, seq: entry.seq, at: entry.at, entry: entry.type, guard: null };
    const note = (machine: Transition["machine"], id: string, from: unknown, to: unknown): void => {
      if (isDeepStrictEqual(from, to)) return;
      transitions.push({ ...at, machine, id, from: (from ?? null) as Json, to: (to ?? null) as Json });
    };
    note("agent", agentId, before.agent, after.agent);
    note("turn", fold.turn?.turnId ?? turnBefore ?? "", before.turn, after.turn);
    for (const callId of new Set([...Object.keys(before.calls), ...Object.keys(after.calls)])) {
      if (after.calls[callId] !== undefined) note("toolCall", callId, before.calls[callId], after.calls[callId]);
    }
    before = after;
  }
  return { fold, transitions };
}
