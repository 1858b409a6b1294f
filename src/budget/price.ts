import type { Price, PriceTier } from "./schemas.ts";

/** Tokens of one call. Input includes tokens read from or written to the cache, output includes reasoning. */
export interface UsedTokens {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cachedInputTokens?: number | undefined;
  readonly cacheWriteTokens?: number | undefined;
  /** Included in `cacheWriteTokens`: written for the longer lifetime that the provider offers. */
  readonly longCacheWriteTokens?: number | undefined;
}

/**
 * The cost of a call in whole micro-dollars (millionths of a dollar), rounded up once, at the prices of its prompt's tier. Prices are
 * rounded to six decimals.
 */
export function costOf(used: UsedTokens, price: Price): number {
  const { inputTokens, outputTokens } = used;
  const cached = Math.min(used.cachedInputTokens ?? 0, inputTokens);
  const written = Math.min(used.cacheWriteTokens ?? 0, inputTokens - cached);
  const writtenLong = Math.min(used.longCacheWriteTokens ?? 0, written);
  const { inputPerMillion, cachedInputPerMillion, outputPerMillion, ...tier } = tierOf(price, inputTokens);
  const { cacheWritePerMillion = inputPerMillion, longCacheWritePerMillion = cacheWritePerMillion } = tier;
  return wholeMicros(
    charge(inputTokens - cached - written, inputPerMillion) +
      charge(cached, cachedInputPerMillion ?? inputPerMillion) +
      charge(written - writtenLong, cacheWritePerMillion) +
      charge(writtenLong, longCacheWritePerMillion) +
      charge(outputTokens, outputPerMillion) +
      charge(1_000_000, price.perCall ?? 0),
  );
}

/**
 * The fraction by which a prompt may be longer than counted without reaching a tier that its reservation ignored: near a threshold, a
 * miscount of one token can double the price of the whole call.
 */
export const TIER_MARGIN = 0.25;

/**
 * Upper bound of a call's cost in micro-dollars, rounded up: no input is cached, all of it is written to the cache at the highest rate if
 * that costs more, and each price is that of the most expensive tier that a prompt 25 % longer than `inputTokens` may reach.
 */
export function costBound(price: Price, inputTokens: number, outputTokens: number): number {
  const { input, output } = dearest(price, inputTokens);
  return wholeMicros(promptBound(price, input, inputTokens) + charge(outputTokens, output));
}

/** The maximum number of output tokens whose cost bound is within `micros`; -1 if the prompt alone exceeds it. */
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

function dearestInput(rates: Rates): number {
  const { inputPerMillion, cachedInputPerMillion, cacheWritePerMillion, longCacheWritePerMillion } = rates;
  return Math.max(
    inputPerMillion,
    cachedInputPerMillion ?? 0,
    cacheWritePerMillion ?? 0,
    longCacheWritePerMillion ?? 0,
  );
}

/** Whether the price, or one of its tiers, has a rate of its own for cache entries of the longer lifetime. */
export function hasLongWriteRate({ longCacheWritePerMillion, tiers = [] }: Price): boolean {
  return [longCacheWritePerMillion, ...tiers.map((tier) => tier.longCacheWritePerMillion)].some(
    (rate) => rate !== undefined,
  );
}

/** The price for the reservation of a call that writes no cache entries of the longer lifetime. */
export function withoutLongWrites(price: Price): Price {
  const { longCacheWritePerMillion: _rate, tiers, ...rates } = price;
  const cheaper = tiers?.map(({ longCacheWritePerMillion: _tierRate, ...tier }) => tier);
  return { ...rates, ...(cheaper === undefined ? {} : { tiers: cheaper }) };
}

function tierOf(price: Price, inputTokens: number): Rates {
  let reached: PriceTier | undefined;
  for (const tier of price.tiers ?? []) {
    const { aboveInputTokens } = tier;
    if (inputTokens > aboveInputTokens && aboveInputTokens >= (reached?.aboveInputTokens ?? 0)) reached = tier;
  }
  return reached ?? price;
}

/** Picodollars, as big integers: 0.07 dollars times 100 tokens must be 7 micro-dollars, not 8. */
function charge(tokens: number, dollarsPerMillion: number): bigint {
  return dollarsPerMillion === 0 ? 0n : BigInt(tokens) * BigInt(Math.round(dollarsPerMillion * 1_000_000));
}

function wholeMicros(picodollars: bigint): number {
  return safely((picodollars + 999_999n) / 1_000_000n);
}

function safely(amount: bigint): number {
  return amount > BigInt(Number.MAX_SAFE_INTEGER) ? Number.MAX_SAFE_INTEGER : Number(amount);
}
