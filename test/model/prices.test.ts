import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { InvalidInputError } from "../../src/errors/index.ts";
import { costOf, type PriceTable, priceOf } from "../../src/model/index.ts";

const table: PriceTable = {
  "gpt-5-mini": { inputPerMillion: 0.25, cachedInputPerMillion: 0.025, outputPerMillion: 2 },
};

describe("priceOf", () => {
  it("knows a model by its exact name only", () => {
    expect(priceOf("gpt-5-mini", table)?.outputPerMillion).toBe(2);
    for (const name of ["gpt-5", "gpt-5-mini-2025-08-07", "toString", "__proto__"])
      expect(priceOf(name, table)).toBeUndefined();
  });

  it.each([Number.NaN, -1, Number.POSITIVE_INFINITY])("refuses %d as a price", (outputPerMillion) => {
    expect(() => priceOf("m", { m: { inputPerMillion: 1, outputPerMillion } })).toThrow(InvalidInputError);
    expect(() => priceOf("m", { m: { inputPerMillion: 1, outputPerMillion } })).toThrow("outputPerMillion");
  });
});

describe("costOf", () => {
  it("is in whole micro-dollars, rounded up, cached input at its own price", () => {
    const price = { inputPerMillion: 0.25, cachedInputPerMillion: 0.025, outputPerMillion: 2 };
    expect(costOf({ inputTokens: 1_000, outputTokens: 500 }, price)).toBe(1_250);
    expect(costOf({ inputTokens: 1_000, outputTokens: 500, cachedInputTokens: 800 }, price)).toBe(1_070);
    expect(costOf({ inputTokens: 1, outputTokens: 0 }, price)).toBe(1);
    expect(costOf({ inputTokens: 0, outputTokens: 0 }, price)).toBe(0);
  });

  it("takes the input's price for cached tokens without one of their own", () => {
    expect(
      costOf(
        { inputTokens: 100, outputTokens: 0, cachedInputTokens: 100 },
        { inputPerMillion: 3, outputPerMillion: 9 },
      ),
    ).toBe(300);
  });

  it("does not round up what is exact, for any price with up to four decimals", () => {
    const tokens = fc.integer({ min: 0, max: 2_000_000_000 });
    fc.assert(
      fc.property(
        tokens,
        tokens,
        fc.integer({ min: 0, max: 10_000_000 }),
        (inputTokens, outputTokens, tenThousandths) => {
          const perMillion = tenThousandths / 10_000;
          const cost = costOf(
            { inputTokens, outputTokens },
            { inputPerMillion: perMillion, outputPerMillion: perMillion },
          );
          const exact = BigInt(inputTokens + outputTokens) * BigInt(tenThousandths);
          expect(cost).toBe(Number((exact + 9_999n) / 10_000n));
        },
      ),
    );
  });
});
