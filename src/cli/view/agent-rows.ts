import { type Account, type Amounts, type LimitName, usedAt } from "../../budget/index.ts";
import type { AgentOverview } from "../../runtime/index.ts";
import { shortAgentId, formatCost, formatCount, formatDuration, formatOf, formatRunningTime } from "./format.ts";
import { waitText } from "./request-lines.ts";
import { type Column, tableLines, placeTree } from "./table.ts";
import { type Style, oneLine } from "./terminal-text.ts";

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
function isAsking({ openRequests }: Pick<AgentOverview, "openRequests">): boolean {
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

type AmountLimit = Exclude<LimitName, "deadlineAt">;

const amountOf: Readonly<Record<AmountLimit, keyof Amounts>> = {
  maxSteps: "steps",
  maxTreeSteps: "treeSteps",
  maxToolCalls: "toolCalls",
  maxTreeToolCalls: "treeToolCalls",
  maxTokens: "tokens",
  maxCostMicros: "costMicros",
  maxActiveMs: "activeMs",
};

interface Standing {
  readonly used: number;
  /** Set aside for calls in flight; 0 for limits that nothing is reserved of. */
  readonly reserved: number;
  readonly limit: number;
}

/**
 * How an agent stands against one of its limits: on the account, of its lifetime or of its open turn, where the least is
 * left. Undefined where no account has that limit.
 */
function standingOf(accounts: readonly Account[], limit: AmountLimit, now: number): Standing | undefined {
  let tightest: Standing | undefined;
  for (const account of accounts) {
    const most = account.limits[limit];
    if (most === undefined) continue;
    const used = usedAt(account, now)[amountOf[limit]];
    const reserved = reservedOf(account, limit);
    const isTighter = tightest === undefined || most - used < tightest.limit - tightest.used;
    if (isTighter) tightest = { used, reserved, limit: most };
  }
  return tightest;
}

function reservedOf({ reserved }: Account, limit: AmountLimit): number {
  if (limit === "maxTokens") return reserved.tokens;
  return limit === "maxCostMicros" ? reserved.costMicros : 0;
}

/** The accounts that bind an agent's own work now: its lifetime's and its newest turn's. */
function accountsOfAgent(accounts: readonly Account[], agentId: string, turnId: string | null): Account[] {
  return accounts.filter(
    (account) => account.agentId === agentId && (account.turnId === null || account.turnId === turnId),
  );
}

/** Milliseconds in which an agent worked or its children did, over all its turns; pauses do not count. */
export function workingTimeOf(accounts: readonly Account[], agentId: string, now: number): number {
  return accounts
    .filter((account) => account.agentId === agentId && account.turnId !== null)
    .reduce((total, account) => total + usedAt(account, now).activeMs, 0);
}

const summaryColumns: readonly Column[] = [
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
  const rows = placed.map(({ member, branch }) => summaryCells(member, branch, context));
  return tableLines(
    summaryColumns,
    placed.length > 1 ? [...rows, totalCells(agents, placed[0]?.member, context)] : rows,
  );
}

function summaryCells(agent: AgentOverview, branch: string, { accounts, now }: RowContext): string[] {
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
