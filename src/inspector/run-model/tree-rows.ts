import { type AgentMoment, isBusy, type Phase, phases } from "./agent-moment.ts";
import type { RunAgent, RunLog } from "./run-log.ts";
import type { RunMoment } from "./run-moments.ts";

/** A row of the tree of agents as it is shown: an agent, or many children of one kind in the same phase. */
export type TreeRow = {
  readonly key: string;
  /** From 1. */
  readonly level: number;
  /** Rows under the same parent, and the place among them, from 1. */
  readonly setSize: number;
  readonly place: number;
  /** Undefined: it has nothing below. */
  readonly isOpen: boolean | undefined;
} & (
  | { readonly kind: "agent"; readonly agent: RunAgent; readonly moment: AgentMoment; readonly busyBelow: number }
  | { readonly kind: "group"; readonly name: string; readonly phase: Phase; readonly count: number }
);

export interface TreeOptions {
  /** Keys of agents that are closed. */
  readonly closed: ReadonlySet<string>;
  /** Keys of groups that are open. */
  readonly open: ReadonlySet<string>;
  /** Lower case; shows agents whose name, id or phase contains it, with those above them. */
  readonly filter: string;
}

/** More children of one name than this are grouped by their phase. */
export const GROUPED_ABOVE = 100;

type Shown = Omit<Extract<TreeRow, { kind: "agent" }>, "setSize" | "place"> | GroupRow;
type GroupRow = Omit<Extract<TreeRow, { kind: "group" }>, "setSize" | "place"> & { readonly members: number[] };

export function treeRows(log: RunLog, moment: RunMoment, options: TreeOptions): TreeRow[] {
  const rows: TreeRow[] = [];
  const kept = options.filter === "" ? undefined : keptAgents(log, moment, options.filter);
  const add = (members: readonly number[], level: number, parentKey: string): void => {
    const shown = siblings(log, moment, { members, level, parentKey, kept, options });
    for (const [index, row] of shown.entries()) {
      const set = { setSize: shown.length, place: index + 1 };
      if (row.kind === "group") {
        const { members: inside, ...group } = row;
        rows.push({ ...group, ...set });
        if (group.isOpen === true) {
          for (const [place, agent] of inside.entries()) {
            const member = agentRow(log, moment, { agent, level: level + 1, kept, options });
            if (member) rows.push({ ...member, setSize: inside.length, place: place + 1 });
            if (member?.isOpen === true) add(member.agent.children, level + 2, member.key);
          }
        }
        continue;
      }
      rows.push({ ...row, ...set });
      if (row.isOpen === true) add(row.agent.children, level + 1, row.key);
    }
  };
  add(
    log.agents.filter(({ parent }) => parent < 0).map(({ index }) => index),
    1,
    "",
  );
  return rows;
}

interface Siblings {
  readonly members: readonly number[];
  readonly level: number;
  readonly parentKey: string;
  readonly kept: ReadonlySet<number> | undefined;
  readonly options: TreeOptions;
}

function siblings(log: RunLog, moment: RunMoment, set: Siblings): Shown[] {
  const { members, level, kept, options } = set;
  const there = members.filter((agent) => moment.agents[agent] !== undefined && kept?.has(agent) !== false);
  const counts = new Map<string, number>();
  for (const agent of there) {
    const name = log.agents[agent]?.name ?? "";
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  const rows: Shown[] = [];
  const groups = new Map<string, GroupRow>();
  for (const agent of there) {
    const name = log.agents[agent]?.name ?? "";
    if ((counts.get(name) ?? 0) <= GROUPED_ABOVE) {
      const row = agentRow(log, moment, { agent, level, kept, options });
      if (row) rows.push(row);
      continue;
    }
    const phase = moment.agents[agent]?.phase ?? "created";
    const key = `${set.parentKey}/${name}/${phase}`;
    const group = groups.get(key);
    if (group) group.members.push(agent);
    else groups.set(key, newGroup(key, { name, phase, level, agent, isOpen: options.open.has(key) }));
  }
  const ordered = [...groups.values()].toSorted((one, other) => rankOf(one.phase) - rankOf(other.phase));
  return [...rows, ...ordered.map((group) => ({ ...group, count: group.members.length }))];
}

function newGroup(
  key: string,
  from: { name: string; phase: Phase; level: number; agent: number; isOpen: boolean },
): GroupRow {
  const { name, phase, level, agent, isOpen } = from;
  return { kind: "group", key, level, name, phase, count: 1, isOpen, members: [agent] };
}

function rankOf(phase: Phase): number {
  return phases.indexOf(phase);
}

interface AgentPlace {
  readonly agent: number;
  readonly level: number;
  readonly kept: ReadonlySet<number> | undefined;
  readonly options: TreeOptions;
}

function agentRow(log: RunLog, moment: RunMoment, { agent: index, level, kept, options }: AgentPlace) {
  const agent = log.agents[index];
  const now = moment.agents[index];
  if (!agent || !now) return undefined;
  let below = 0;
  let busyBelow = 0;
  for (const child of agent.children) {
    const state = moment.agents[child];
    if (!state || kept?.has(child) === false) continue;
    below += 1;
    if (isBusy(state)) busyBelow += 1;
  }
  const isOpen = below === 0 ? undefined : kept !== undefined || !options.closed.has(agent.agentId);
  return { kind: "agent", key: agent.agentId, level, agent, moment: now, isOpen, busyBelow } as const;
}

/** The agents that match, and all above them. */
function keptAgents(log: RunLog, moment: RunMoment, filter: string): Set<number> {
  const kept = new Set<number>();
  for (const { index, name, agentId } of log.agents) {
    const now = moment.agents[index];
    if (!now) continue;
    const isMatch =
      name.toLowerCase().includes(filter) || agentId.toLowerCase().includes(filter) || now.phase.includes(filter);
    if (!isMatch) continue;
    for (let at = index; at >= 0 && !kept.has(at); at = log.agents[at]?.parent ?? -1) kept.add(at);
  }
  return kept;
}
