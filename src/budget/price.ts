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

/** The most output tokens whose cost bound stays within `micros`; -1 when not even the prompt does. */
export function outputWithin(price: Price, inputTokens: number, micros: number): number {
  const left = micros - price.inputPerMillion * inputTokens;
  if (left < 0) return -1;
  if (price.outputPerMillion === 0) return Number.MAX_SAFE_INTEGER;
  let output = Math.min(Number.MAX_SAFE_INTEGER, Math.floor(left / price.outputPerMillion));
  // Prices are fractions: their rounding may put the bound one micro-dollar above what is left.
  while (output >= 0 && costBound(price, inputTokens, output) > micros) output -= 1;
  return output;
}
