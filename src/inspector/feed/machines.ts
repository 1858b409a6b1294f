import { countUpTo } from "../replay/machines.ts";
import type { AgentMachines, Transition, TransitionPage } from "./answers.ts";
import { type AgentJournal, journalOf } from "./agent-journal.ts";
import type { RunSource } from "./source.ts";

const TRANSITIONS_AT_A_TIME = 500;

/** The states of an agent's machines once all rows up to the cursor `at` are folded; `null` folds all rows. */
export async function machinesOf(source: RunSource, agentId: string, at: number | null): Promise<AgentMachines> {
  const { journal } = await journalOf(source, agentId);
  const until = at ?? Number.POSITIVE_INFINITY;
  const states = (await journal.machines()).at(until);
  const { rows } = journal;
  return { agentId, cursor: rows[countUpTo(rows, until) - 1]?.cursor ?? 0, ...states };
}

/** The transitions of an agent's machines, oldest first. */
export async function transitionPage(source: RunSource, agentId: string, after?: string): Promise<TransitionPage> {
  const transitions = await allTransitions(await journalOf(source, agentId));
  const start = Number(after ?? 0);
  const end = start + TRANSITIONS_AT_A_TIME;
  const next = end < transitions.length ? String(end) : null;
  return { items: transitions.slice(start, end), next, total: transitions.length };
}

export async function allTransitions({ journal }: AgentJournal): Promise<readonly Transition[]> {
  return (await journal.machines()).transitions;
}
