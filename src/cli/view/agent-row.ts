import type { Account } from "../../budget/index.ts";
import type { AgentOverview } from "../../runtime/index.ts";
import { shortAgentId } from "../job/job-id.ts";
import { formatCost, formatCount, formatOf, formatRunningTime } from "./format.ts";
import { accountsOfAgent, type Standing, standingOf, workingTimeOf } from "./limits.ts";
import { waitText } from "./request-lines.ts";
import type { Style } from "./styles.ts";
import type { Column } from "./table.ts";
import { oneLine } from "./text-width.ts";

export const agentColumns: readonly Column[] = [
  { title: "AGENT", maxWidth: 36 },
  { title: "STATE", maxWidth: 24 },
  { title: "STEP", align: "right" },
  { title: "TOKENS", align: "right" },
  { title: "COST", align: "right" },
  { title: "TIME", align: "right" },
  { title: "NOW" },
];

export interface RowContext {
  readonly accounts: readonly Account[];
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/** The cells of one agent in the live tree; where a limit binds, what is used stands against it. */
export function agentCells(agent: AgentOverview, branch: string, { accounts, now }: RowContext): string[] {
  const own = accountsOfAgent(accounts, agent.agentId, agent.turnId);
  const steps = standingOf(own, "maxSteps", now);
  const tokens = standingOf(own, "maxTokens", now);
  const cost = standingOf(own, "maxCostMicros", now);
  const time = standingOf(own, "maxActiveMs", now);
  const ownTokens = agent.usage.inputTokens + agent.usage.outputTokens;
  return [
    branch + agentLabel(agent),
    stateOf(agent).text,
    formatOf(String(steps?.used ?? agent.step), steps && String(steps.limit)),
    formatOf(
      formatCount(tokens?.used ?? ownTokens) + reservedText(tokens, formatCount),
      tokens && formatCount(tokens.limit),
    ),
    formatOf(
      formatCost(agent.costMicros === null ? null : (cost?.used ?? agent.costMicros)) + reservedText(cost, formatCost),
      cost && formatCost(cost.limit),
    ),
    formatOf(
      formatRunningTime(time?.used ?? workingTimeOf(accounts, agent.agentId, now)),
      time && formatRunningTime(time.limit),
    ),
    activityText(agent),
  ];
}

/** What calls in flight have reserved, behind what is used: `24k+4.4k`. */
function reservedText(standing: Standing | undefined, format: (amount: number) => string): string {
  return standing && standing.reserved > 0 ? `+${format(standing.reserved)}` : "";
}

/** `lead ask-mibodu`, `reader ~3fa9c1`. */
export function agentLabel(agent: Pick<AgentOverview, "agentId" | "name" | "isBackground">): string {
  return `${agent.name} ${shortAgentId(agent.agentId)}${agent.isBackground ? " (background)" : ""}`;
}

/** What an agent does, or how it ended, in a few words. */
export function stateOf(agent: AgentOverview): { readonly text: string; readonly style: Style } {
  if (agent.endedAt !== null) {
    if (agent.stopReason === "completed" || agent.stopReason === "finish_reason")
      return { text: "✓ done", style: "dim" };
    if (agent.stopReason === "error" || agent.stopReason === "retry_limit") return { text: "✗ failed", style: "red" };
    return { text: `■ ${agent.stopReason ?? "stopped"}`, style: "yellow" };
  }
  if (agent.status === "failed") return { text: "✗ failed", style: "red" };
  if (agent.status === "paused") return { text: "‖ paused", style: "yellow" };
  if (agent.turnId === null) return { text: `· ${agent.status}`, style: "dim" };
  if (isAsking(agent)) return { text: "? waits for you", style: "cyan" };
  return { text: `● ${agent.activity}`, style: agent.activity === "retrying" ? "yellow" : "plain" };
}

/** Whether somebody has to decide something before it goes on. */
export function isAsking({ openRequests }: Pick<AgentOverview, "openRequests">): boolean {
  return Object.keys(openRequests).length > 0;
}

function activityText(agent: AgentOverview): string {
  if (agent.endedAt !== null && agent.message !== null) return oneLine(agent.message);
  const [asking, ...others] = Object.values(agent.openRequests);
  if (asking !== undefined) return `${waitText(asking)}${others.length === 0 ? "" : ` (and ${others.length} more)`}`;
  const prompt = oneLine(agent.prompt);
  const tools = Object.entries(countsOf(Object.values(agent.runningTools)));
  if (tools.length === 0) return prompt;
  return `${tools.map(([name, count]) => (count === 1 ? name : `${name} ×${count}`)).join(", ")} · ${prompt}`;
}

function countsOf(names: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}
