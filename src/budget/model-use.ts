import { z } from "zod";
import type { DeepReadonly } from "../base/index.ts";

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
export type SettledUsage = DeepReadonly<z.infer<typeof settledUsageSchema>>;

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
export type ModelUse = DeepReadonly<z.infer<typeof modelUseSchema>>;

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
    calls: one.calls + other.calls,
    inputTokens: one.inputTokens + other.inputTokens,
    outputTokens: one.outputTokens + other.outputTokens,
    cachedInputTokens: one.cachedInputTokens + other.cachedInputTokens,
    reasoningTokens: one.reasoningTokens + other.reasoningTokens,
    costMicros: one.costMicros + other.costMicros,
    estimatedCalls: one.estimatedCalls + other.estimatedCalls,
    unconfirmedCalls: one.unconfirmedCalls + other.unconfirmedCalls,
    unpricedCalls: one.unpricedCalls + other.unpricedCalls,
  };
}
