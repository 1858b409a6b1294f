// The agents that all views show: by filter, state, critical path, closed subtrees and sort order. The address contains
// all of this except the closed subtrees.
import { computed, signal } from "@preact/signals";
import { type CriticalPath, criticalPath } from "../run-model/critical-path.ts";
import { isNarrow, type TreeRow, treeRows } from "../run-model/tree-rows.ts";
import { allAgents, noteSoon, type Route, route, selectedAgent, session } from "./page-state.ts";

type Choice = Pick<Route, "filter" | "state" | "isCritical">;

/** Ids of agents whose descendants are hidden. */
const closed = signal<ReadonlySet<string>>(new Set());

/** Filters the agents of all views, including agents in closed subtrees. */
export function chooseAgents(choice: Partial<Choice>): void {
  closed.value = new Set();
  noteSoon(choice);
}

export function showAllAgents(): void {
  chooseAgents(allAgents);
}

export function toggleBelow({ agent, isOpen }: TreeRow): void {
  if (isOpen === undefined) return;
  const next = new Set(closed.value);
  if (!next.delete(agent.agentId)) next.add(agent.agentId);
  closed.value = next;
}

const text = computed(() => route.value.filter.trim().toLowerCase());
const state = computed(() => route.value.state);
const order = computed(() => route.value.order);
const isCritical = computed(() => route.value.isCritical);

/** The critical path of the run; `undefined` unless *critical only* is on. */
export const shownPath = computed((): CriticalPath | undefined => {
  const run = session.value;
  if (!run || !isCritical.value) return undefined;
  // Reading the axis updates the timeline's spans.
  return run.axis.value.length > 0 ? criticalPath(run.log, run.timeline, run.present.peek()) : undefined;
});

const filter = computed(() => ({
  text: text.value,
  state: state.value,
  among: shownPath.value ? new Set(shownPath.value.keys()) : null,
}));

/** The rows of the tree, which the timeline shares. */
export const shownRows = computed((): readonly TreeRow[] => {
  const run = session.value;
  if (!run) return [];
  const timeOf = (agent: number): number => run.timeFor(agent);
  return treeRows(run.log, run.moment.value, { ...filter.value, closed: closed.value, order: order.value, timeOf });
});

/** Indexes of the shown agents, in order. */
export const shownOrder = computed(() => shownRows.value.map(({ agent }) => agent.index));

/** Whether agents are or could be hidden. */
export const isNarrowed = computed(
  () => isNarrow(filter.value) || shownRows.value.length < (session.value?.log.agents.length ?? 0),
);

let known: ReadonlySet<number> = new Set();

/**
 * Indexes of the agents that pass the filter themselves; `null` without a filter. Returns the same set object while its
 * content is the same.
 */
export const fittingAgents = computed((): ReadonlySet<number> | null => {
  if (!isNarrowed.value) return null;
  const fitting = new Set(shownRows.value.filter(({ isMatch }) => isMatch).map(({ agent }) => agent.index));
  const isSame = fitting.size === known.size && [...fitting].every((agent) => known.has(agent));
  if (!isSame) known = fitting;
  return known;
});

export const isSelectedHidden = computed(
  () => selectedAgent.value >= 0 && isNarrowed.value && !shownOrder.value.includes(selectedAgent.value),
);
