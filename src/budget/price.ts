import { z } from "zod";

/** Dollars per million tokens, which is the same number as micro-dollars per token. */
export const priceSchema = z.object({
  inputPerMillion: z.number().nonnegative(),
  cachedInputPerMillion: z.number().nonnegative().optional(),
  outputPerMillion: z.number().nonnegative(),
});
export type Price = z.infer<typeof priceSchema>;

/** Upper bound of a call's cost in micro-dollars, rounded up. */
export function costBound(price: Price, inputTokens: number, outputTokens: number): number {
  return Math.ceil(price.inputPerMillion * inputTokens + price.outputPerMillion * outputTokens);
}
