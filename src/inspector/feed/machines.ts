import { machinesAt, transitionsOf } from "../replay/machines.ts";
import type { AgentMachines, Transition, TransitionPage } from "./answers.ts";
import { type AgentJournal, journalOf } from "./agent-journal.ts";
import type { RunSource } from "./source.ts";

const TRANSITIONS_AT_A_TIME = 500;

/** The states of an agent's machines when all rows up to a cursor are folded; null: all there are. */
export async function machinesOf(source: RunSource, agentId: string, at: number | null): Promise<AgentMachines> {
  const { rows } = await journalOf(source, agentId, at);
  const { cursor, agent, turn, calls, last } = machinesAt(agentId, rows);
  return {
    agentId,
    cursor,
    agent: { value: agent.value },
    turn: turn && { turnId: turn.turnId, value: turn.value },
    calls: calls.map(({ callId, name, value }) => ({ callId, name, value })),
    last,
  };
}

/** The transitions of an agent's machines, oldest first. */
export async function transitionPage(source: RunSource, agentId: string, after?: string): Promise<TransitionPage> {
  const transitions = allTransitions(await journalOf(source, agentId));
  const start = Number(after ?? 0);
  const end = start + TRANSITIONS_AT_A_TIME;
  return { items: transitions.slice(start, end), next: end < transitions.length ? String(end) : null };
}

export function allTransitions({ record, rows }: AgentJournal): Transition[] {
  return [...transitionsOf(record.agentId, rows)];
}
