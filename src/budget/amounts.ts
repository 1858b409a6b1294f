import { z } from "zod";
import type { DeepReadonly } from "../base/index.ts";

const count = z.number().int().nonnegative();

/**
 * The amounts that an account has used, all integers: tokens, calls, micro-dollars, milliseconds.
 * `steps` and `toolCalls` count the account's own agent, the `tree…` forms its whole subtree (design, Budgets).
 */
export const amountsSchema = z.object({
  steps: count,
  treeSteps: count,
  toolCalls: count,
  treeToolCalls: count,
  tokens: count,
  costMicros: count,
  activeMs: count,
});
export type Amounts = DeepReadonly<z.infer<typeof amountsSchema>>;

export const noAmounts: Amounts = Object.freeze({
  steps: 0,
  treeSteps: 0,
  toolCalls: 0,
  treeToolCalls: 0,
  tokens: 0,
  costMicros: 0,
  activeMs: 0,
});

/** The sum, at most the largest safe integer: beyond it sums would be rounded. */
export function addAmounts(one: number, other: number): number {
  return Math.min(Number.MAX_SAFE_INTEGER, one + other);
}

/** Tokens and money set aside for calls in flight. */
export const reservedAmountsSchema = z.object({ tokens: count, costMicros: count });
export type ReservedAmounts = DeepReadonly<z.infer<typeof reservedAmountsSchema>>;

export const nothingReserved: ReservedAmounts = Object.freeze({ tokens: 0, costMicros: 0 });

/** Tokens of one settled call. `inputTokens` includes cached tokens and cache writes, `outputTokens` reasoning tokens. */
export const settledUsageSchema = z.object({
  inputTokens: count,
  outputTokens: count,
  cachedInputTokens: count.optional(),
  cacheWriteTokens: count.optional(),
  reasoningTokens: count.optional(),
  /** True when the provider sent no usage and it was counted here. */
  estimated: z.boolean().optional(),
});
export type SettledUsage = DeepReadonly<z.infer<typeof settledUsageSchema>>;

/** The use of one model by an account and all below it, in tokens and micro-dollars. */
export const modelUseSchema = z.object({
  /** Calls that may have cost something: calls that the provider refused do not count. */
  calls: count,
  inputTokens: count,
  outputTokens: count,
  cachedInputTokens: count,
  /** Absent in what was stored before it was counted. */
  cacheWriteTokens: count.default(0),
  reasoningTokens: count,
  costMicros: count,
  /** Calls whose tokens were counted here because the provider sent no usage. */
  estimatedCalls: count,
  /** Calls whose outcome is unknown: all that they had reserved counts. */
  unconfirmedCalls: count,
  /** Calls without a known price: they add nothing to the cost. */
  unpricedCalls: count,
});
export type ModelUse = DeepReadonly<z.infer<typeof modelUseSchema>>;

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
