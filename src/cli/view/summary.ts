import type { AgentOverview } from "../../runtime/index.ts";
import { shortAgentId } from "../job/job-id.ts";
import { agentLabel, isAsking, type RowContext } from "./agent-row.ts";
import { formatCost, formatCount, formatDuration } from "./format.ts";
import { workingTimeOf } from "./limits.ts";
import { type Column, tableLines } from "./table.ts";
import { placeTree } from "./tree-order.ts";

const columns: readonly Column[] = [
  { title: "AGENT", maxWidth: 40 },
  { title: "PARENT", maxWidth: 24 },
  { title: "TURNS", align: "right" },
  { title: "STEPS", align: "right" },
  { title: "TOOL CALLS", align: "right" },
  { title: "TOKENS", align: "right" },
  { title: "COST", align: "right" },
  { title: "TIME", align: "right" },
  { title: "STOP REASON" },
];

/** The table at the end of a job: each agent's own figures, and where there are several, the sum of what adds up. */
export function summaryLines(agents: readonly AgentOverview[], context: RowContext): string[] {
  const placed = placeTree(agents);
  const rows = placed.map(({ member, branch }) => agentCells(member, branch, context));
  return tableLines(columns, placed.length > 1 ? [...rows, totalCells(agents, placed[0]?.member, context)] : rows);
}

function agentCells(agent: AgentOverview, branch: string, { accounts, now }: RowContext): string[] {
  return [
    branch + agentLabel(agent),
    agent.parentAgentId === null ? "-" : shortAgentId(agent.parentAgentId),
    String(agent.turns),
    String(agent.steps),
    String(agent.toolCalls),
    formatCount(tokensOf(agent)),
    formatCost(agent.costMicros),
    formatDuration(workingTimeOf(accounts, agent.agentId, now)),
    agent.stopReason ?? standingText(agent),
  ];
}

function standingText(agent: AgentOverview): string {
  if (isAsking(agent)) return "waits for somebody";
  return agent.turnId === null ? agent.status : `${agent.status}, not ended`;
}

/** Agents work side by side: the time of all is that of the root. */
function totalCells(
  agents: readonly AgentOverview[],
  root: AgentOverview | undefined,
  { accounts, now }: RowContext,
): string[] {
  const sum = (amount: (agent: AgentOverview) => number): string =>
    String(agents.reduce((total, agent) => total + amount(agent), 0));
  return [
    "total",
    "",
    sum((agent) => agent.turns),
    sum((agent) => agent.steps),
    sum((agent) => agent.toolCalls),
    formatCount(Number(sum(tokensOf))),
    formatCost(totalCost(agents)),
    root === undefined ? "" : formatDuration(workingTimeOf(accounts, root.agentId, now)),
    "",
  ];
}

function tokensOf({ usage }: AgentOverview): number {
  return usage.inputTokens + usage.outputTokens;
}

/** Unknown as soon as one price is. */
function totalCost(agents: readonly AgentOverview[]): number | null {
  let total = 0;
  for (const { costMicros } of agents) {
    if (costMicros === null) return null;
    total += costMicros;
  }
  return total;
}
