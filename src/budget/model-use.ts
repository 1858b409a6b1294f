import { z } from "zod";
import { addAmounts } from "./amounts.ts";

const count = z.number().int().nonnegative();

/** Tokens of one call as they are settled. `inputTokens` includes the cached ones, `outputTokens` the reasoning ones. */
export const settledUsageSchema = z.object({
  inputTokens: count,
  outputTokens: count,
  cachedInputTokens: count.optional(),
  reasoningTokens: count.optional(),
  /** True when the provider sent no usage and it was counted here. */
  estimated: z.boolean().optional(),
});
export type SettledUsage = z.infer<typeof settledUsageSchema>;

/** What the calls of one model have used on an account and all below it. Tokens and micro-dollars. */
export const modelUseSchema = z.object({
  /** Calls that may have cost something; those that a provider refused are not among them. */
  calls: count,
  inputTokens: count,
  outputTokens: count,
  cachedInputTokens: count,
  reasoningTokens: count,
  costMicros: count,
  /** Calls whose tokens were counted here, because the provider sent none. */
  estimatedCalls: count,
  /** Calls that are counted at all they had reserved, because nobody knows what became of them. */
  unconfirmedCalls: count,
  /** Calls whose price nobody knows: they add nothing to the cost. */
  unpricedCalls: count,
});
export type ModelUse = z.infer<typeof modelUseSchema>;

export const noModelUse: ModelUse = Object.freeze({
  calls: 0,
  inputTokens: 0,
  outputTokens: 0,
  cachedInputTokens: 0,
  reasoningTokens: 0,
  costMicros: 0,
  estimatedCalls: 0,
  unconfirmedCalls: 0,
  unpricedCalls: 0,
});

/** The sum of two: of two agents, or of two models. */
export function addModelUse(one: ModelUse, other: ModelUse): ModelUse {
  return {
    calls: addAmounts(one.calls, other.calls),
    inputTokens: addAmounts(one.inputTokens, other.inputTokens),
    outputTokens: addAmounts(one.outputTokens, other.outputTokens),
    cachedInputTokens: addAmounts(one.cachedInputTokens, other.cachedInputTokens),
    reasoningTokens: addAmounts(one.reasoningTokens, other.reasoningTokens),
    costMicros: addAmounts(one.costMicros, other.costMicros),
    estimatedCalls: addAmounts(one.estimatedCalls, other.estimatedCalls),
    unconfirmedCalls: addAmounts(one.unconfirmedCalls, other.unconfirmedCalls),
    unpricedCalls: addAmounts(one.unpricedCalls, other.unpricedCalls),
  };
}
