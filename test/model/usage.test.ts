import { afterEach, describe, expect, it } from "vitest";
import type { Usage } from "../../src/state/index.ts";
import {
  chunk,
  done,
  event,
  modelSending,
  neverAborted,
  request,
  stopServers,
  streamed,
} from "../support/model-calls.ts";

afterEach(stopServers);

/** The usage of a whole answer with this reported usage. */
async function usageOf(usage: unknown, content = "hello world"): Promise<Usage> {
  const choices = [{ index: 0, message: { content }, finish_reason: "stop" }];
  const model = await modelSending(JSON.stringify({ id: "c1", model: "served", choices, usage }));
  return (await model.generate(request, { signal: neverAborted })).usage;
}

/** The usage of a streamed answer with these chunks after the text. */
async function streamedUsage(...chunks: readonly object[]): Promise<Usage> {
  const text = chunk({ content: "hello world" }, "stop");
  return (await streamed(await modelSending([text, ...chunks.map(event), done].join("")))).answer.usage;
}

const usageOnly = (usage: unknown): object => ({ id: "c1", choices: [], usage });

describe("usage as servers report it", () => {
  it.each<[string, object, Usage]>([
    [
      "input and output",
      { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 },
      { inputTokens: 7, outputTokens: 3 },
    ],
    ["the newer names", { input_tokens: 7, output_tokens: 3 }, { inputTokens: 7, outputTokens: 3 }],
    ["numbers as text", { prompt_tokens: "7", completion_tokens: "3" }, { inputTokens: 7, outputTokens: 3 }],
    ["fractions", { prompt_tokens: 6.5, completion_tokens: 3 }, { inputTokens: 7, outputTokens: 3 }],
    [
      "details",
      {
        prompt_tokens: 100,
        completion_tokens: 30,
        prompt_tokens_details: { cached_tokens: 64, cache_write_tokens: 20, audio_tokens: 0 },
        completion_tokens_details: { reasoning_tokens: 20 },
      },
      { inputTokens: 100, outputTokens: 30, cachedInputTokens: 64, cacheWriteTokens: 20, reasoningTokens: 20 },
    ],
    [
      "details that are null",
      { prompt_tokens: 7, completion_tokens: 3, prompt_tokens_details: null, completion_tokens_details: null },
      { inputTokens: 7, outputTokens: 3 },
    ],
    [
      "details of the newer names",
      {
        input_tokens: 100,
        output_tokens: 30,
        input_tokens_details: { cached_tokens: 64 },
        output_tokens_details: { reasoning_tokens: 20 },
      },
      { inputTokens: 100, outputTokens: 30, cachedInputTokens: 64, reasoningTokens: 20 },
    ],
    [
      "hits and misses of the cache",
      { prompt_tokens: 100, completion_tokens: 3, prompt_cache_hit_tokens: 64, prompt_cache_miss_tokens: 36 },
      { inputTokens: 100, outputTokens: 3, cachedInputTokens: 64 },
    ],
    [
      "cached tokens next to the rest",
      { prompt_tokens: 100, completion_tokens: 3, cached_tokens: 64 },
      { inputTokens: 100, outputTokens: 3, cachedInputTokens: 64 },
    ],
    [
      "cached tokens next to the input",
      { input_tokens: 10, output_tokens: 3, cache_read_input_tokens: 64, cache_creation_input_tokens: 26 },
      { inputTokens: 100, outputTokens: 3, cachedInputTokens: 64, cacheWriteTokens: 26 },
    ],
    [
      "cache entries of two lifetimes",
      {
        input_tokens: 10,
        output_tokens: 3,
        cache_read_input_tokens: 64,
        cache_creation_input_tokens: 26,
        cache_creation: { ephemeral_5m_input_tokens: 6, ephemeral_1h_input_tokens: 20 },
      },
      { inputTokens: 100, outputTokens: 3, cachedInputTokens: 64, cacheWriteTokens: 26, longCacheWriteTokens: 20 },
    ],
    [
      "cached tokens as a part of the input",
      { prompt_tokens: 100, completion_tokens: 3, cache_read_input_tokens: 64, cache_creation_input_tokens: 26 },
      { inputTokens: 100, outputTokens: 3, cachedInputTokens: 64, cacheWriteTokens: 26 },
    ],
    [
      "more cached tokens than input",
      { prompt_tokens: 10, completion_tokens: 3, prompt_tokens_details: { cached_tokens: 64 } },
      { inputTokens: 74, outputTokens: 3, cachedInputTokens: 64 },
    ],
    [
      "reasoning only in the total",
      {
        prompt_tokens: 10,
        completion_tokens: 2,
        total_tokens: 112,
        completion_tokens_details: { reasoning_tokens: 100 },
      },
      { inputTokens: 10, outputTokens: 102, reasoningTokens: 100 },
    ],
    [
      "reasoning next to the output, without a total",
      { prompt_tokens: 10, completion_tokens: 2, completion_tokens_details: { reasoning_tokens: 100 } },
      { inputTokens: 10, outputTokens: 102, reasoningTokens: 100 },
    ],
  ])("%s", async (_shape, reported, usage) => {
    expect(await usageOf(reported)).toEqual(usage);
  });
});

describe("usage in a stream", () => {
  it("is in a last chunk without choices", async () => {
    expect(await streamedUsage(usageOnly({ prompt_tokens: 7, completion_tokens: 3 }))).toEqual({
      inputTokens: 7,
      outputTokens: 3,
    });
  });

  it("is in every chunk so far; zeros and nulls at the end do not reset it", async () => {
    const usage = await streamedUsage(
      usageOnly({ prompt_tokens: 7, completion_tokens: 1, prompt_tokens_details: { cached_tokens: 4 } }),
      usageOnly({ prompt_tokens: 7, completion_tokens: 3, prompt_tokens_details: null }),
      usageOnly({ prompt_tokens: 0, completion_tokens: 0 }),
      usageOnly(null),
    );
    expect(usage).toEqual({ inputTokens: 7, outputTokens: 3, cachedInputTokens: 4 });
  });

  it("is input first and output last", async () => {
    const usage = await streamedUsage(
      usageOnly({ input_tokens: 7, output_tokens: 1 }),
      usageOnly({ output_tokens: 3 }),
    );
    expect(usage).toEqual({ inputTokens: 7, outputTokens: 3 });
  });

  it("is in the choice, or under the provider's own name", async () => {
    const told = { prompt_tokens: 7, completion_tokens: 3 };
    const usage = { inputTokens: 7, outputTokens: 3 };
    expect(await streamedUsage({ choices: [{ index: 0, delta: {}, finish_reason: null, usage: told }] })).toEqual(
      usage,
    );
    expect(await streamedUsage({ choices: [], x_groq: { id: "r", usage: told } })).toEqual(usage);
  });
});

describe("missing or impossible usage", () => {
  it.each([undefined, null, {}, [], "7", 7, { prompt_tokens: 0, completion_tokens: 0 }, { prompt_tokens: null }])(
    "%o is counted here, and flagged",
    async (reported) => {
      expect(await usageOf(reported)).toEqual({ inputTokens: 18, outputTokens: 2, estimated: true });
    },
  );

  it("a missing count is computed, the other is used as reported", async () => {
    expect(await usageOf({ completion_tokens: 3 })).toEqual({ inputTokens: 18, outputTokens: 3, estimated: true });
    expect(await usageOf({ prompt_tokens: 7 })).toEqual({ inputTokens: 7, outputTokens: 2, estimated: true });
    expect(await usageOf({ prompt_tokens: 0, completion_tokens: 3 })).toMatchObject({
      inputTokens: 18,
      outputTokens: 3,
    });
  });

  it.each([
    [{ prompt_tokens: -7, completion_tokens: 3 }, "the server reported prompt_tokens: -7"],
    [{ prompt_tokens: 7, completion_tokens: "NaN" }, 'the server reported completion_tokens: "NaN"'],
    [{ prompt_tokens: 7, completion_tokens: 1e15 }, "the server reported completion_tokens: 1000000000000000"],
    [{ prompt_tokens: { all: 7 }, completion_tokens: 3 }, 'the server reported prompt_tokens: {"all":7}'],
  ])("%o is computed if it is invalid, and the note contains the reported value", async (reported, note) => {
    const usage = await usageOf(reported);
    expect(usage).toMatchObject({ estimated: true, note });
    expect(usage.inputTokens + usage.outputTokens).toBeLessThan(30);
  });

  it("an output count too low for the text is computed here, and noted", async () => {
    const text = "The quick brown fox jumps over the lazy dog. ".repeat(40);
    expect(await usageOf({ prompt_tokens: 7, completion_tokens: 5 }, text)).toEqual({
      inputTokens: 7,
      outputTokens: 401,
      estimated: true,
      note: "the server reported 5 output tokens for a text of about 401",
    });
  });

  it("a low token count for a long text is accepted if the text allows it", async () => {
    const blank = await usageOf({ prompt_tokens: 7, completion_tokens: 40 }, " ".repeat(4_000));
    expect(blank).toEqual({ inputTokens: 7, outputTokens: 40 });
    const other = await usageOf({ prompt_tokens: 7, completion_tokens: 300 }, "The lazy dog sleeps. ".repeat(80));
    expect(other).toEqual({ inputTokens: 7, outputTokens: 300 });
  });
});
