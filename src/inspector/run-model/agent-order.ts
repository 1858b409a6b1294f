import { agentAccountId } from "../../budget/index.ts";
import { type AgentMoment, isBusy } from "./agent-moment.ts";
import { type LimitUse, limitUses, shareOf } from "./limit-use.ts";
import type { RunAgent, RunLog } from "./run-log.ts";
import type { RunMoment } from "./run-moments.ts";

/** Sort orders of siblings: by creation, or by an amount with the largest first. */
export const agentOrders = ["start", "tokens", "cost", "duration", "limit"] as const;
export type AgentOrder = (typeof agentOrders)[number];

/** A run at a moment. `timeOf` returns the time to use for an agent; it stands still for an interrupted agent. */
export interface OrderedRun {
  readonly log: Pick<RunLog, "agents">;
  readonly moment: RunMoment;
  readonly timeOf: (agent: number) => number;
}

/** The limits of the agent's turn account and lifetime account, the fullest first. */
export function ownLimitUses(
  { accounts }: RunMoment,
  agentId: string,
  turnAccount: string | null,
  time: number,
): LimitUse[] {
  const ids = turnAccount === null ? [agentAccountId(agentId)] : [turnAccount, agentAccountId(agentId)];
  const own = ids.flatMap((id) => accounts.account(id) ?? []);
  return own.flatMap((account) => limitUses(account, time)).toSorted((one, other) => shareOf(other) - shareOf(one));
}

/** Milliseconds from the agent's creation until it stopped working, or until `time`. */
export function durationOf({ createdAt }: RunAgent, moment: AgentMoment, time: number): number {
  const isOver = !isBusy(moment) && moment.phase !== "lost" && moment.phase !== "paused";
  return Math.max(0, (isOver ? moment.since : time) - createdAt);
}

/** What an agent and its descendants have spent. */
export interface Spent {
  readonly tokens: number;
  /** One item per model, or per agent. */
  readonly costs: readonly Pick<AgentMoment, "costMicros" | "calls" | "unpricedCalls">[];
}

/** From the agent's account. The journal lacks accounts that code opened; then it sums up all descendants. */
export function spentBelow(
  { agents }: Pick<RunLog, "agents">,
  run: RunMoment,
  { agentId, index, children }: RunAgent,
): Spent {
  const account = run.accounts.account(agentAccountId(agentId));
  if (account) return { tokens: account.used.tokens, costs: Object.values(account.models) };
  const own = run.agents[index];
  const below = children.flatMap((child) => agents[child] ?? []).map((child) => spentBelow({ agents }, run, child));
  return {
    tokens: below.reduce((sum, { tokens }) => sum + tokens, (own?.inputTokens ?? 0) + (own?.outputTokens ?? 0)),
    costs: [...(own ? [own] : []), ...below.flatMap(({ costs }) => costs)],
  };
}

/** The amount by which an agent is ordered; -1 for an agent that does not exist yet. */
export function sizeIn(order: AgentOrder, agent: RunAgent, { log, moment: run, timeOf }: OrderedRun): number {
  const { agentId, index } = agent;
  const moment = run.agents[index];
  if (!moment) return -1;
  switch (order) {
    case "tokens":
      return spentBelow(log, run, agent).tokens;
    case "cost":
      return spentBelow(log, run, agent).costs.reduce((sum, { costMicros }) => sum + costMicros, 0);
    case "duration":
      return durationOf(agent, moment, timeOf(index));
    case "limit": {
      const [use] = ownLimitUses(run, agentId, moment.accountId, timeOf(index));
      return use ? shareOf(use) : 0;
    }
    case "start":
      return 0;
    default:
      return order satisfies never;
  }
}
