import { z } from "zod";
import type { DeepReadonly } from "../base/index.ts";

/**
 * In dollars per million tokens. A smaller price is nearly always a price per token by mistake, and would round to
 * nothing.
 */
const finestPrice = 0.0001;
/** A dollar a token. */
const highestPrice = 1_000_000;

const rate = z
  .number()
  .nonnegative()
  .max(highestPrice)
  .refine((value) => value === 0 || value >= finestPrice, { message: "a price per token? Multiply it by a million" });

const rates = {
  inputPerMillion: rate,
  /** Input that the provider found in its cache. Default: `inputPerMillion`. */
  cachedInputPerMillion: rate.optional(),
  /** Input that the provider wrote to its cache, where it charges that separately. Default: `inputPerMillion`. */
  cacheWritePerMillion: rate.optional(),
  /** Reasoning tokens are output tokens. */
  outputPerMillion: rate,
};

/** The prices of a call whose prompt has more tokens than `aboveInputTokens`; they hold for all of its tokens. */
export const priceTierSchema = z.strictObject({ aboveInputTokens: z.number().int().nonnegative(), ...rates });
export type PriceTier = DeepReadonly<z.infer<typeof priceTierSchema>>;

/** Dollars per million tokens, which is the same number as micro-dollars per token. */
export const priceSchema = z.strictObject({
  ...rates,
  /** Dollars for each call, whatever its tokens. Default 0. */
  perCall: z.number().nonnegative().max(highestPrice).optional(),
  /** Prices of longer prompts, in any order. Default: none. */
  tiers: z.array(priceTierSchema).optional(),
});
/** Dollars per million tokens of one model. */
export type Price = DeepReadonly<z.infer<typeof priceSchema>>;

/** Tokens of one call. Input includes what was cached or written to the cache, output includes reasoning. */
export interface UsedTokens {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cachedInputTokens?: number | undefined;
  readonly cacheWriteTokens?: number | undefined;
}

/**
 * The cost of a call in whole micro-dollars (millionths of a dollar), rounded up once, at the prices of the tier that its
 * prompt has reached. Prices are rounded to six decimals.
 */
export function costOf(used: UsedTokens, price: Price): number {
  const { inputTokens, outputTokens } = used;
  const cached = Math.min(used.cachedInputTokens ?? 0, inputTokens);
  const written = Math.min(used.cacheWriteTokens ?? 0, inputTokens - cached);
  const tier = tierOf(price, inputTokens);
  const { inputPerMillion, cachedInputPerMillion, cacheWritePerMillion, outputPerMillion } = tier;
  return wholeMicros(
    charge(inputTokens - cached - written, inputPerMillion) +
      charge(cached, cachedInputPerMillion ?? inputPerMillion) +
      charge(written, cacheWritePerMillion ?? inputPerMillion) +
      charge(outputTokens, outputPerMillion) +
      charge(1_000_000, price.perCall ?? 0),
  );
}

/**
 * The share by which a prompt may turn out longer than counted without reaching a tier that its reservation left out: near a
 * threshold a miscount of one token can double the price of the whole call.
 */
export const TIER_MARGIN = 0.25;

/**
 * Upper bound of a call's cost in micro-dollars, rounded up: no input is cached, all of it is written to the cache where
 * that is dearer, and each price is that of the dearest tier that a prompt a quarter longer than `inputTokens` may reach.
 */
export function costBound(price: Price, inputTokens: number, outputTokens: number): number {
  const { input, output } = dearest(price, inputTokens);
  return wholeMicros(promptBound(price, input, inputTokens) + charge(outputTokens, output));
}

/** The most output tokens whose cost bound stays within `micros`; -1 if the prompt alone exceeds it. */
export function outputWithin(price: Price, inputTokens: number, micros: number): number {
  const { input, output } = dearest(price, inputTokens);
  const left = BigInt(micros) * 1_000_000n - promptBound(price, input, inputTokens);
  if (left < 0n) return -1;
  const each = charge(1, output);
  return each === 0n ? Number.MAX_SAFE_INTEGER : safely(left / each);
}

function promptBound({ perCall }: Price, input: number, inputTokens: number): bigint {
  return charge(inputTokens, input) + charge(1_000_000, perCall ?? 0);
}

/** The highest price of input and of output among the tiers that the prompt may reach. */
function dearest(price: Price, inputTokens: number): { readonly input: number; readonly output: number } {
  const longest = inputTokens * (1 + TIER_MARGIN);
  let input = dearestInput(price);
  let output = price.outputPerMillion;
  for (const tier of price.tiers ?? []) {
    if (tier.aboveInputTokens >= longest) continue;
    input = Math.max(input, dearestInput(tier));
    output = Math.max(output, tier.outputPerMillion);
  }
  return { input, output };
}

type Rates = Omit<PriceTier, "aboveInputTokens">;

function dearestInput({ inputPerMillion, cachedInputPerMillion, cacheWritePerMillion }: Rates): number {
  return Math.max(inputPerMillion, cachedInputPerMillion ?? 0, cacheWritePerMillion ?? 0);
}

function tierOf(price: Price, inputTokens: number): Rates {
  let reached: PriceTier | undefined;
  for (const tier of price.tiers ?? []) {
    const { aboveInputTokens } = tier;
    if (inputTokens > aboveInputTokens && aboveInputTokens >= (reached?.aboveInputTokens ?? 0)) reached = tier;
  }
  return reached ?? price;
}

/** Picodollars, in big integers: 0.07 dollars times 100 tokens must be 7 micro-dollars, not 8. */
function charge(tokens: number, dollarsPerMillion: number): bigint {
  return dollarsPerMillion === 0 ? 0n : BigInt(tokens) * BigInt(Math.round(dollarsPerMillion * 1_000_000));
}

function wholeMicros(picodollars: bigint): number {
  return safely((picodollars + 999_999n) / 1_000_000n);
}

function safely(amount: bigint): number {
  return amount > BigInt(Number.MAX_SAFE_INTEGER) ? Number.MAX_SAFE_INTEGER : Number(amount);
}
