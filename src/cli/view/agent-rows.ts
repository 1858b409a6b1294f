import { type Account, type Amounts, type LimitName, usedAt } from "../../budget/index.ts";
import type { AgentOverview } from "../../state/index.ts";
import {
  shortAgentId,
  formatCached,
  formatCost,
  formatCount,
  formatDuration,
  formatOf,
  formatRunningTime,
} from "./format.ts";
import { waitText } from "./request-lines.ts";
import { type Column, tableLines, placeTree } from "./table.ts";
import { type Style, oneLine } from "./terminal-text.ts";

export const agentColumns: readonly Column[] = [
  { title: "AGENT", maxWidth: 36, minWidth: 20 },
  { title: "STATE", maxWidth: 24, minWidth: 12 },
  { title: "STEP", align: "right", leaveOut: 1 },
  { title: "TOKENS", align: "right", leaveOut: 4 },
  { title: "COST", align: "right", leaveOut: 3 },
  { title: "TIME", align: "right", leaveOut: 2 },
  { title: "NOW", minWidth: 24 },
];

export interface RowContext {
  readonly accounts: readonly Account[];
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/** How the live tree formats amounts: with the reservations of calls in flight, or without. */
type AmountForm = "full" | "short";

/** The cells of one agent in the live tree; a limited amount is formatted as used/limit. */
export function agentCells(
  agent: AgentOverview,
  branch: string,
  { accounts, now }: RowContext,
  form: AmountForm = "full",
): string[] {
  const own = accountsOfAgent(accounts, agent.agentId, agent.turnId);
  const steps = standingOf(own, "maxSteps", now);
  const tokens = standingOf(own, "maxTokens", now);
  const cost = standingOf(own, "maxCostMicros", now);
  const time = standingOf(own, "maxActiveMs", now);
  const reserved = (standing: LimitUse | undefined, format: (amount: number) => string): string =>
    form === "full" ? reservedText(standing, format) : "";
  const ownTokens = agent.usage.inputTokens + agent.usage.outputTokens;
  return [
    branch + agentLabel(agent),
    stateOf(agent).text,
    formatOf(String(steps?.used ?? agent.step), steps && String(steps.limit)),
    formatOf(
      formatCount(tokens?.used ?? ownTokens) + reserved(tokens, formatCount),
      tokens && formatCount(tokens.limit),
    ),
    formatOf(
      formatCost(agent.costMicros === null ? null : (cost?.used ?? agent.costMicros)) + reserved(cost, formatCost),
      cost && formatCost(cost.limit),
    ),
    formatOf(
      formatRunningTime(time?.used ?? workingTimeOf(accounts, agent.agentId, now)),
      time && formatRunningTime(time.limit),
    ),
    activityText(agent),
  ];
}

/** The reservations of calls in flight: the `+4.4k` of `24k+4.4k`. */
function reservedText(standing: LimitUse | undefined, format: (amount: number) => string): string {
  return standing && standing.reserved > 0 ? `+${format(standing.reserved)}` : "";
}

/** `lead ask-mibodu`, `reader ~3fa9c1`. */
export function agentLabel(agent: Pick<AgentOverview, "agentId" | "name" | "isBackground">): string {
  return `${agent.name} ${shortAgentId(agent.agentId)}${agent.isBackground ? " (background)" : ""}`;
}

/** The state of an agent, or its outcome, in a few words. */
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

/** True if the agent waits for a decision or an answer. */
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

interface LimitUse {
  readonly used: number;
  /** Reserved for calls in flight; 0 for limits without reservations. */
  readonly reserved: number;
  readonly limit: number;
}

/**
 * An agent's usage and limit for one kind of limit. If its lifetime and its open turn have that limit, the one with
 * less left is used. `undefined` if no account has it.
 */
function standingOf(accounts: readonly Account[], limit: AmountLimit, now: number): LimitUse | undefined {
  let tightest: LimitUse | undefined;
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

/** The accounts of an agent's lifetime and of its newest turn. */
function accountsOfAgent(accounts: readonly Account[], agentId: string, turnId: string | null): Account[] {
  return byAgent(accounts, agentId).filter((account) => account.turnId === null || account.turnId === turnId);
}

/** Indexes accounts by agent, so that a table does not search all of them for each row. */
const indices = new WeakMap<readonly Account[], ReadonlyMap<string, readonly Account[]>>();

function byAgent(accounts: readonly Account[], agentId: string): readonly Account[] {
  const index = indices.get(accounts) ?? Map.groupBy(accounts, (account) => account.agentId);
  indices.set(accounts, index);
  return index.get(agentId) ?? [];
}

/** Working time of an agent and its children over all turns, in milliseconds, without pauses. */
export function workingTimeOf(accounts: readonly Account[], agentId: string, now: number): number {
  return byAgent(accounts, agentId)
    .filter((account) => account.turnId !== null)
    .reduce((total, account) => total + usedAt(account, now).activeMs, 0);
}

const summaryColumns: readonly Column[] = [
  { title: "AGENT", maxWidth: 40, minWidth: 20 },
  // The branches of the tree already show the parents.
  { title: "PARENT", maxWidth: 24, leaveOut: 1 },
  { title: "TURNS", align: "right", leaveOut: 3 },
  { title: "STEPS", align: "right", leaveOut: 4 },
  { title: "TOOL CALLS", align: "right", leaveOut: 2 },
  { title: "TOKENS", align: "right", leaveOut: 6 },
  { title: "COST", align: "right", leaveOut: 7 },
  { title: "TIME", align: "right", leaveOut: 5 },
  { title: "STOP REASON", minWidth: 12 },
];

/**
 * The table at the end of a job: the figures of each agent, and the totals of several. Columns are dropped if it is
 * wider than `width`.
 */
export function summaryLines(agents: readonly AgentOverview[], context: RowContext, width: number): string[] {
  const placed = placeTree(agents);
  const rows = placed.map(({ member, branch }) => summaryCells(member, branch, context));
  return tableLines(
    summaryColumns,
    placed.length > 1 ? [...rows, totalCells(agents, placed[0]?.member, context)] : rows,
    width,
  );
}

function summaryCells(agent: AgentOverview, branch: string, { accounts, now }: RowContext): string[] {
  return [
    branch + agentLabel(agent),
    agent.parentAgentId === null ? "-" : shortAgentId(agent.parentAgentId),
    String(agent.turns),
    String(agent.steps),
    String(agent.toolCalls),
    tokensText(tokensOf(agent), agent.usage),
    formatCost(agent.costMicros),
    formatDuration(workingTimeOf(accounts, agent.agentId, now)),
    agent.stopReason ?? standingText(agent),
  ];
}

function standingText(agent: AgentOverview): string {
  if (isAsking(agent)) return "waits for a decision";
  return agent.turnId === null ? agent.status : `${agent.status}, not ended`;
}

/** The total time is the root's time, because agents work in parallel. */
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
    tokensText(Number(sum(tokensOf)), {
      inputTokens: Number(sum(({ usage }) => usage.inputTokens)),
      cachedInputTokens: Number(sum(({ usage }) => usage.cachedInputTokens ?? 0)),
    }),
    formatCost(totalCost(agents)),
    root === undefined ? "" : formatDuration(workingTimeOf(accounts, root.agentId, now)),
    "",
  ];
}

function tokensOf({ usage }: AgentOverview): number {
  return usage.inputTokens + usage.outputTokens;
}

function tokensText(tokens: number, use: InputUse): string {
  const cached = formatCached(use);
  return formatCount(tokens) + (cached === undefined ? "" : ` (${cached})`);
}

/** Unknown if any price is. */
function totalCost(agents: readonly AgentOverview[]): number | null {
  let total = 0;
  for (const { costMicros } of agents) {
    if (costMicros === null) return null;
    total += costMicros;
  }
  return total;
}
