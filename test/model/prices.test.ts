import { describe, expect, it } from "vitest";
import { InvalidInputError } from "../../src/errors/index.ts";
import { PriceBook } from "../../src/model/index.ts";

const now = Date.UTC(2026, 10, 21);
const own = { inputPerMillion: 7, outputPerMillion: 9 };
const priceOf = async (provider: string, name: string, at = now) =>
  await new PriceBook().priceOf({ provider, name }, true, at);

describe("the user's table", () => {
  it("takes precedence, and the name with its provider over the name alone", async () => {
    const dear = { ...own, inputPerMillion: 70 };
    const book = new PriceBook({ "gpt-5": own, "azure/gpt-5": dear });
    expect(await book.priceOf({ provider: "openai", name: "gpt-5" }, true, now)).toEqual(own);
    expect(await book.priceOf({ provider: "azure", name: "gpt-5" }, true, now)).toEqual(dear);
  });

  it("matches names exactly", async () => {
    const book = new PriceBook({ "my-model": own });
    for (const name of ["my", "my-model-2", "toString", "__proto__"]) {
      expect(await book.priceOf({ provider: "mine", name }, true, now)).toBeNull();
    }
  });

  it.each([
    [{ inputPerMillion: 1, outputPerMillion: -1 }, 'prices["m"].outputPerMillion is not valid'],
    [{ inputPerMillion: 1 }, 'prices["m"].outputPerMillion is not valid'],
    [{ inputPerMillion: 0.000_002, outputPerMillion: 1 }, "a price per token? Multiply it by a million"],
    [{ input: 1, output: 2 }, 'prices["m"]'],
    [3, "expected dollars per million tokens, 0 or at least 0.0001, for instance"],
  ])("refuses %o as a price", (price, words) => {
    const given = () => new PriceBook({ m: price as typeof own });
    expect(given).toThrow(InvalidInputError);
    expect(given).toThrow(words);
  });
});

describe("the public list", () => {
  it("has prices by provider and name, with the cached input's and the longer prompts' own", async () => {
    expect(await priceOf("openai", "gpt-5-mini")).toEqual({
      inputPerMillion: 0.25,
      cachedInputPerMillion: 0.025,
      outputPerMillion: 2,
    });
    expect(await priceOf("google", "gemini-2.5-pro")).toEqual({
      inputPerMillion: 1.25,
      cachedInputPerMillion: 0.125,
      outputPerMillion: 10,
      tiers: [{ aboveInputTokens: 200_000, inputPerMillion: 2.5, cachedInputPerMillion: 0.25, outputPerMillion: 15 }],
    });
    expect(await priceOf("anthropic", "claude-sonnet-4-5")).toMatchObject({
      cacheWritePerMillion: 3.75,
      longCacheWritePerMillion: 6,
      tiers: [{ cacheWritePerMillion: 7.5, longCacheWritePerMillion: 12 }],
    });
    expect(await priceOf("perplexity", "sonar")).toMatchObject({ perCall: expect.closeTo(0.012) });
  });

  it("resolves a name with a date", async () => {
    expect(await priceOf("openai", "gpt-4o-2024-05-13")).toMatchObject({ inputPerMillion: 5 });
    expect(await priceOf("openai", "gpt-4o")).toMatchObject({ inputPerMillion: 2.5 });
  });

  it("returns the current price if it has changed over time", async () => {
    expect(await priceOf("openai", "o3", Date.UTC(2025, 4, 1))).toMatchObject({ inputPerMillion: 10 });
    expect(await priceOf("openai", "o3")).toMatchObject({ inputPerMillion: 2 });
  });

  it.each([
    ["openai", "gpt-5-of-my-own"],
    ["openai", "llama-3.3-70b-versatile"],
    ["openai", "text-embedding-3-small"],
    ["openai", "whisper-1"],
    ["openai-compatible", "gpt-5"],
    ["nobody", "gpt-5"],
    ["offline", "offline"],
    ["scripted", "gpt-5"],
  ])("has none for %s/%s: an unknown price is neither zero nor another's", async (provider, name) => {
    expect(await priceOf(provider, name)).toBeNull();
  });

  it("is loaded only if a cost limit applies or costs are shown", async () => {
    const model = { provider: "openai", name: "gpt-5" };
    expect(await new PriceBook().priceOf(model, false, now)).toBeNull();
    expect(await new PriceBook({}, { searchesAlways: true }).priceOf(model, false, now)).not.toBeNull();
    expect(await new PriceBook({ "gpt-5": own }).priceOf(model, false, now)).toEqual(own);
  });
});
