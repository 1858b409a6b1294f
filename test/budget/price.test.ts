import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  costBound,
  costOf,
  outputWithin,
  type Price,
  priceSchema,
  TIER_MARGIN,
  withoutLongWrites,
} from "../../src/budget/index.ts";

const flat: Price = { inputPerMillion: 0.25, cachedInputPerMillion: 0.025, outputPerMillion: 2 };
const tiered: Price = {
  ...flat,
  tiers: [
    { aboveInputTokens: 200_000, inputPerMillion: 0.5, cachedInputPerMillion: 0.05, outputPerMillion: 3 },
    { aboveInputTokens: 1_000_000, inputPerMillion: 1, outputPerMillion: 2.5 },
  ],
};

describe("a price", () => {
  test.each([
    [{ inputPerMillion: 1, outputPerMillion: -1 }],
    [{ inputPerMillion: Number.NaN, outputPerMillion: 1 }],
    [{ inputPerMillion: Number.POSITIVE_INFINITY, outputPerMillion: 1 }],
    [{ inputPerMillion: "1", outputPerMillion: 1 }],
    [{ outputPerMillion: 1 }],
    [{ inputPerMillion: 1, outputPerMillion: 1, cachedInput: 0.1 }],
    [{ inputPerMillion: 0.000_001_25, outputPerMillion: 0.000_01 }],
    [
      {
        inputPerMillion: 1,
        outputPerMillion: 1,
        tiers: [{ aboveInputTokens: 0.5, inputPerMillion: 1, outputPerMillion: 1 }],
      },
    ],
    [{ inputPerMillion: 1, outputPerMillion: 1, perCall: -1 }],
    [{ inputPerMillion: 1, outputPerMillion: 1, longCacheWritePerMillion: -1 }],
  ])("cannot be %o", (price) => {
    expect(priceSchema.safeParse(price).success).toBe(false);
  });

  test("of 0 is valid", () => {
    expect(
      costOf({ inputTokens: 1_000, outputTokens: 9 }, priceSchema.parse({ inputPerMillion: 0, outputPerMillion: 0 })),
    ).toBe(0);
  });
});

describe("the cost of a call", () => {
  test("is in whole micro-dollars, rounded up once, with separate prices for cached and cache-written input", () => {
    expect(costOf({ inputTokens: 1_000, outputTokens: 500 }, flat)).toBe(1_250);
    expect(costOf({ inputTokens: 1_000, outputTokens: 500, cachedInputTokens: 800 }, flat)).toBe(1_070);
    expect(costOf({ inputTokens: 1_000, outputTokens: 0, cachedInputTokens: 9_000 }, flat)).toBe(25);
    expect(costOf({ inputTokens: 1, outputTokens: 0 }, flat)).toBe(1);
    expect(costOf({ inputTokens: 0, outputTokens: 0 }, flat)).toBe(0);
    const written = { inputTokens: 1_000, outputTokens: 0, cachedInputTokens: 600, cacheWriteTokens: 400 };
    expect(costOf(written, flat)).toBe(115);
    expect(costOf(written, { ...flat, cacheWritePerMillion: 2.5 })).toBe(1_015);
  });

  test("has a second rate for cache entries of the longer lifetime", () => {
    const price = { inputPerMillion: 1, cacheWritePerMillion: 1.25, longCacheWritePerMillion: 2, outputPerMillion: 5 };
    const used = { inputTokens: 1_000, outputTokens: 0, cacheWriteTokens: 800 };
    expect(costOf(used, price)).toBe(1_200);
    expect(costOf({ ...used, longCacheWriteTokens: 300 }, price)).toBe(200 + 625 + 600);
    expect(costOf({ ...used, longCacheWriteTokens: 900 }, price)).toBe(200 + 1_600);
    const { longCacheWritePerMillion: _rate, ...single } = price;
    expect(costOf({ ...used, longCacheWriteTokens: 300 }, single)).toBe(1_200);
    expect(costOf({ ...used, longCacheWriteTokens: 300 }, flat)).toBe(250);
  });

  test("uses the input price for cached tokens without a price", () => {
    const price = { inputPerMillion: 3, outputPerMillion: 9 };
    expect(costOf({ inputTokens: 100, outputTokens: 0, cachedInputTokens: 100 }, price)).toBe(300);
  });

  test("includes the price per call", () => {
    expect(costOf({ inputTokens: 0, outputTokens: 0 }, { ...flat, perCall: 0.005 })).toBe(5_000);
    expect(costBound({ ...flat, perCall: 0.005 }, 0, 0)).toBe(5_000);
  });

  test("uses the price tier that its prompt has reached, for all tokens", () => {
    expect(costOf({ inputTokens: 200_000, outputTokens: 1_000 }, tiered)).toBe(52_000);
    expect(costOf({ inputTokens: 200_001, outputTokens: 1_000 }, tiered)).toBe(103_001);
    expect(costOf({ inputTokens: 200_001, outputTokens: 0, cachedInputTokens: 200_001 }, tiered)).toBe(10_001);
    expect(costOf({ inputTokens: 2_000_000, outputTokens: 1_000 }, tiered)).toBe(2_002_500);
    const reversed = { ...tiered, tiers: (tiered.tiers ?? []).toReversed() };
    expect(costOf({ inputTokens: 2_000_000, outputTokens: 1_000 }, reversed)).toBe(2_002_500);
  });

  test("does not round up exact amounts, for any price with up to four decimals", () => {
    const tokens = fc.integer({ min: 0, max: 2_000_000_000 });
    const price = fc.integer({ min: 0, max: 10_000_000 });
    fc.assert(
      fc.property(tokens, tokens, price, (inputTokens, outputTokens, tenThousandths) => {
        const perMillion = tenThousandths / 10_000;
        const cost = costOf(
          { inputTokens, outputTokens },
          { inputPerMillion: perMillion, outputPerMillion: perMillion },
        );
        const exact = BigInt(inputTokens + outputTokens) * BigInt(tenThousandths);
        expect(cost).toBe(Number((exact + 9_999n) / 10_000n));
      }),
      { seed: 7 },
    );
  });
});

const rate = fc.integer({ min: 0, max: 40_000 }).map((tenThousandths) => tenThousandths / 1_000);
const rates = {
  inputPerMillion: rate,
  outputPerMillion: rate,
  cachedInputPerMillion: fc.option(rate, { nil: undefined }),
  cacheWritePerMillion: fc.option(rate, { nil: undefined }),
  longCacheWritePerMillion: fc.option(rate, { nil: undefined }),
};
const anyPrice = fc.record({
  ...rates,
  perCall: fc.option(rate, { nil: undefined }),
  tiers: fc.option(fc.array(fc.record({ aboveInputTokens: fc.nat(4_000), ...rates }), { maxLength: 3 }), {
    nil: undefined,
  }),
});

describe("the upper bound of a call's cost", () => {
  test("is never below the cost, regardless of cached and cache-written tokens", () => {
    const amount = fc.nat(5_000);
    fc.assert(
      fc.property(anyPrice, fc.tuple(amount, amount, amount, amount, amount), (price, amounts) => {
        const [inputTokens, outputTokens, cached, written, long] = amounts;
        const bound = costBound(price, inputTokens, outputTokens);
        for (const share of [1, 0.5, 0]) {
          const used = {
            inputTokens: Math.floor(inputTokens * share),
            outputTokens: Math.ceil(outputTokens * share),
            cachedInputTokens: cached,
            cacheWriteTokens: written,
            longCacheWriteTokens: long,
          };
          expect(costOf(used, price)).toBeLessThanOrEqual(bound);
          // Without the rate of the longer lifetime, the bound holds for calls that write nothing at it.
          const { longCacheWriteTokens: _long, ...short } = used;
          const lower = costBound(withoutLongWrites(price), inputTokens, outputTokens);
          expect(costOf(short, price)).toBeLessThanOrEqual(lower);
          expect(lower).toBeLessThanOrEqual(bound);
        }
      }),
      { seed: 11, numRuns: 500 },
    );
  });

  test("uses the next tier if a prompt a quarter longer would reach it", () => {
    const near = 200_000 / (1 + TIER_MARGIN);
    expect(costBound(tiered, near, 0)).toBe(Math.ceil(near * 0.25));
    expect(costBound(tiered, near + 1, 0)).toBe(Math.ceil((near + 1) * 0.5));
    expect(costBound(tiered, 2_000_000, 1_000)).toBe(2_003_000);
  });

  test("outputWithin() returns the highest output that the money covers, to the token", () => {
    fc.assert(
      fc.property(anyPrice, fc.nat(5_000), fc.nat(1_000_000), (price, inputTokens, micros) => {
        const output = outputWithin(price, inputTokens, micros);
        const fits = output < 0 || costBound(price, inputTokens, output) <= micros;
        const isMost = output === Number.MAX_SAFE_INTEGER || costBound(price, inputTokens, output + 1) > micros;
        expect({ fits, isMost }).toEqual({ fits: true, isMost: true });
      }),
      { seed: 13, numRuns: 500 },
    );
  });
});
