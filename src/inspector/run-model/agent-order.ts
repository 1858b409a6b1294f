import { agentAccountId } from "../../budget/index.ts";
import { type AgentMoment, isBusy } from "./agent-moment.ts";
import { type LimitUse, limitUses, shareOf } from "./limit-use.ts";
import type { RunAgent } from "./run-log.ts";
import type { RunMoment } from "./run-moments.ts";

/** What siblings are ordered by: when they were created, or the largest amount first. */
export const agentOrders = ["start", "tokens", "cost", "duration", "limit"] as const;
export type AgentOrder = (typeof agentOrders)[number];

/** The time at which an agent is looked at, which stands still for one that was interrupted. */
export type TimeOf = (agent: number) => number;

/** The limits of the agent's own accounts, of its turn and of its life, the fullest first. */
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

/** Milliseconds from its creation until it came to rest, or until the time. */
export function durationOf({ createdAt }: RunAgent, moment: AgentMoment, time: number): number {
  const isOver = !isBusy(moment) && moment.phase !== "lost" && moment.phase !== "paused";
  return Math.max(0, (isOver ? moment.since : time) - createdAt);
}

/** Tokens of the agent and all below it. */
export function tokensOf({ accounts }: RunMoment, agentId: string, moment: AgentMoment): number {
  return accounts.account(agentAccountId(agentId))?.used.tokens ?? moment.inputTokens + moment.outputTokens;
}

/** How large an agent is in an order; -1 for one that is not there yet. */
export function sizeIn(order: AgentOrder, run: RunMoment, agent: RunAgent, timeOf: TimeOf): number {
  const { agentId, index } = agent;
  const moment = run.agents[index];
  if (!moment) return -1;
  switch (order) {
    case "tokens":
      return tokensOf(run, agentId, moment);
    case "cost":
      return run.accounts.account(agentAccountId(agentId))?.used.costMicros ?? moment.costMicros;
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
