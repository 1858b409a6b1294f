import { agentAccountId } from "../../budget/index.ts";
import { type AgentMoment, isBusy } from "./agent-moment.ts";
import { type LimitUse, limitUses, shareOf } from "./limit-use.ts";
import type { RunAgent, RunLog } from "./run-log.ts";
import type { RunMoment } from "./run-moments.ts";

/** What siblings are ordered by: when they were created, or the largest amount first. */
export const agentOrders = ["start", "tokens", "cost", "duration", "limit"] as const;
export type AgentOrder = (typeof agentOrders)[number];

/** A run at a moment, with the time at which an agent is looked at: it stands still for one that was interrupted. */
export interface OrderedRun {
  readonly log: Pick<RunLog, "agents">;
  readonly moment: RunMoment;
  readonly timeOf: (agent: number) => number;
}

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

/** What an agent and all below it have spent. */
export interface Spent {
  readonly tokens: number;
  /** By model, or by agent. */
  readonly costs: readonly Pick<AgentMoment, "costMicros" | "calls" | "unpricedCalls">[];
}

/** By the agent's account, which the journal lacks where code has opened it: then of all below it, one by one. */
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

/** How large an agent is in an order; -1 for one that is not there yet. */
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
