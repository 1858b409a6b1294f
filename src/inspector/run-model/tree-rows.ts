import { type AgentOrder, type OrderedRun, sizeIn } from "./agent-order.ts";
import { type AgentMoment, isBusy, type Phase, phases } from "./agent-moment.ts";
import type { RunAgent, RunLog } from "./run-log.ts";
import type { RunMoment } from "./run-moments.ts";

/** States for filtering agents: one phase, or `busy` for all phases in which an agent works. */
export const agentStates = ["busy", ...phases] as const;
export type AgentState = "busy" | Phase;

/** Selects agents. Their ancestors are shown too. */
export interface AgentFilter {
  /** In lower case. Must occur in the name, the id or the phase. Empty for all agents. */
  readonly text: string;
  /** `null` for agents in any state. */
  readonly state: AgentState | null;
  /** Indexes of the allowed agents; `null` for all agents. */
  readonly among: ReadonlySet<number> | null;
}

export interface TreeOptions extends AgentFilter {
  /** Ids of agents whose descendants are hidden. */
  readonly closed: ReadonlySet<string>;
  readonly order: AgentOrder;
  readonly timeOf: OrderedRun["timeOf"];
}

/** A row of the agent tree. All views share the rows. */
export interface TreeRow {
  readonly agent: RunAgent;
  /** `undefined` if the agent was not created yet at the moment. */
  readonly moment: AgentMoment | undefined;
  /** From 1. */
  readonly level: number;
  /** Number of rows under the same parent, and this row's position among them, from 1. */
  readonly setSize: number;
  readonly place: number;
  /** Whether the rows below are shown; `undefined` if there are none. */
  readonly isOpen: boolean | undefined;
  /** False if the agent does not pass the filter and is shown only because a descendant does. */
  readonly isMatch: boolean;
}

export function treeRows(log: RunLog, moment: RunMoment, options: TreeOptions): TreeRow[] {
  const { closed, order, timeOf } = options;
  const matches = isNarrow(options) ? log.agents.map((agent) => isWanted(agent, moment, options)) : undefined;
  const kept = matches && withThoseAbove(log, matches);
  const rows: TreeRow[] = [];
  const isKept = (agent: number): boolean => kept?.[agent] !== false;
  const add = (members: readonly number[], level: number): void => {
    const agents = members.filter(isKept).flatMap((index) => log.agents[index] ?? []);
    for (const [index, agent] of inOrder(agents, order, { log, moment, timeOf }).entries()) {
      const isOpen = agent.children.some(isKept) ? !closed.has(agent.agentId) : undefined;
      rows.push({
        agent,
        moment: moment.agents[agent.index],
        level,
        setSize: agents.length,
        place: index + 1,
        isOpen,
        isMatch: matches?.[agent.index] !== false,
      });
      if (isOpen === true) add(agent.children, level + 1);
    }
  };
  add(
    log.agents.filter(({ parent }) => parent < 0).map(({ index }) => index),
    1,
  );
  return rows;
}

export function isNarrow({ text, state, among }: AgentFilter): boolean {
  return text !== "" || state !== null || among !== null;
}

export function isInState(moment: AgentMoment, state: AgentState): boolean {
  return state === "busy" ? isBusy(moment) : moment.phase === state;
}

function isWanted({ index, name, agentId }: RunAgent, run: RunMoment, { text, state, among }: AgentFilter): boolean {
  const moment = run.agents[index];
  if (among?.has(index) === false) return false;
  if (state !== null && (!moment || !isInState(moment, state))) return false;
  const words = text === "" ? "" : `${name} ${agentId} ${moment?.phase ?? ""}`.toLowerCase();
  return words.includes(text);
}

/** Largest first; agents of equal size in creation order. */
function inOrder(agents: readonly RunAgent[], order: AgentOrder, run: OrderedRun): readonly RunAgent[] {
  if (order === "start") return agents;
  const sized = agents.map((agent) => ({ agent, size: sizeIn(order, agent, run) }));
  return sized.toSorted((one, other) => other.size - one.size).map(({ agent }) => agent);
}

function withThoseAbove({ agents }: RunLog, matches: readonly boolean[]): boolean[] {
  const kept = [...matches];
  for (const [index, isMatch] of matches.entries()) {
    if (!isMatch) continue;
    for (let at = agents[index]?.parent ?? -1; at >= 0 && kept[at] !== true; at = agents[at]?.parent ?? -1) {
      kept[at] = true;
    }
  }
  return kept;
}
