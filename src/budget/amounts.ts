import { z } from "zod";

const count = z.number().int().nonnegative();

/**
 * What an account has used. All integers: tokens, calls, micro-dollars, milliseconds.
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
export type Amounts = z.infer<typeof amountsSchema>;

export const noAmounts: Amounts = Object.freeze({
  steps: 0,
  treeSteps: 0,
  toolCalls: 0,
  treeToolCalls: 0,
  tokens: 0,
  costMicros: 0,
  activeMs: 0,
});

/** The sum of two amounts, as large as a whole number can be told from the next one: no sum is ever lost to rounding. */
export function addAmounts(one: number, other: number): number {
  return Math.min(Number.MAX_SAFE_INTEGER, one + other);
}

/** Tokens and money set aside for calls in flight. */
export const reservedAmountsSchema = z.object({ tokens: count, costMicros: count });
export type ReservedAmounts = z.infer<typeof reservedAmountsSchema>;

export const nothingReserved: ReservedAmounts = Object.freeze({ tokens: 0, costMicros: 0 });
