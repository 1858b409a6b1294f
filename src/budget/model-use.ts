import type { ModelUse } from "./schemas.ts";

export const noModelUse: ModelUse = Object.freeze({
  calls: 0,
  inputTokens: 0,
  outputTokens: 0,
  cachedInputTokens: 0,
  cacheWriteTokens: 0,
  reasoningTokens: 0,
  costMicros: 0,
  estimatedCalls: 0,
  unconfirmedCalls: 0,
  unpricedCalls: 0,
});

/** The sum, at most the largest safe integer: larger sums would be rounded. */
export function addAmounts(one: number, other: number): number {
  return Math.min(Number.MAX_SAFE_INTEGER, one + other);
}

export function addModelUse(one: ModelUse, other: ModelUse): ModelUse {
  return {
    calls: addAmounts(one.calls, other.calls),
    inputTokens: addAmounts(one.inputTokens, other.inputTokens),
    outputTokens: addAmounts(one.outputTokens, other.outputTokens),
    cachedInputTokens: addAmounts(one.cachedInputTokens, other.cachedInputTokens),
    cacheWriteTokens: addAmounts(one.cacheWriteTokens, other.cacheWriteTokens),
    reasoningTokens: addAmounts(one.reasoningTokens, other.reasoningTokens),
    costMicros: addAmounts(one.costMicros, other.costMicros),
    estimatedCalls: addAmounts(one.estimatedCalls, other.estimatedCalls),
    unconfirmedCalls: addAmounts(one.unconfirmedCalls, other.unconfirmedCalls),
    unpricedCalls: addAmounts(one.unpricedCalls, other.unpricedCalls),
  };
}

/** The use of models, by requested name. */
export type UseByModel = Readonly<Record<string, ModelUse>>;

export interface AgentSpending {
  /** Use by the agent's own calls. */
  readonly own: UseByModel;
  /** Use by its own calls and those of all subagents whose spending counts on its accounts. */
  readonly tree: UseByModel;
}

/** The sum over all models. */
export function totalUse(models: UseByModel): ModelUse {
  return Object.values(models).reduce(addModelUse, noModelUse);
}

export function addUse(one: UseByModel, other: UseByModel): UseByModel {
  return combined(one, other, addModelUse);
}

/** The fields of an account that attribute spending. */
interface Spender {
  readonly id: string;
  readonly agentId: string;
  readonly parentId: string | null;
  readonly models: UseByModel;
}

/**
 * The spending of each agent, from the accounts of its tree. An account counts all spending below it, so an agent's own spending is its
 * account minus those of its children.
 */
export function spendingByAgent(accounts: readonly Spender[]): ReadonlyMap<string, AgentSpending> {
  const holders = new Map(accounts.map(({ id, agentId }) => [id, agentId]));
  const trees = new Map<string, UseByModel>();
  const below = new Map<string, UseByModel>();
  for (const { agentId, parentId, models } of accounts) {
    const holder = parentId === null ? undefined : holders.get(parentId);
    // The agent's lifetime account includes the turns below it.
    if (holder === agentId) continue;
    trees.set(agentId, addUse(trees.get(agentId) ?? {}, models));
    if (holder !== undefined) below.set(holder, addUse(below.get(holder) ?? {}, models));
  }
  return new Map(
    [...trees].map(([agentId, tree]) => [agentId, { tree, own: combined(tree, below.get(agentId) ?? {}, less) }]),
  );
}

function combined(one: UseByModel, other: UseByModel, join: (left: ModelUse, right: ModelUse) => ModelUse): UseByModel {
  const names = new Set([...Object.keys(one), ...Object.keys(other)]);
  const pairs = [...names].map((name) => [name, join(useOfModel(one, name), useOfModel(other, name))] as const);
  return Object.fromEntries(pairs.filter(([, use]) => use.calls > 0));
}

/** The use of one model. */
export function useOfModel(models: UseByModel, name: string): ModelUse {
  return (Object.hasOwn(models, name) ? models[name] : undefined) ?? noModelUse;
}

/** Subtracts each amount of the second from the first, never below zero. */
function less(one: ModelUse, other: ModelUse): ModelUse {
  const parts = Object.entries(one) as [keyof ModelUse, number][];
  return Object.fromEntries(parts.map(([name, amount]) => [name, Math.max(0, amount - other[name])])) as ModelUse;
}
