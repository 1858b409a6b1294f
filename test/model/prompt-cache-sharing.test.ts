import { describe, expect, test } from "vitest";
import { z } from "zod";
import {
  defineAgent,
  defineTool,
  elideResults,
  fullHistory,
  type HistoryCompiler,
  memoryStores,
  run,
  windowHistory,
} from "../../src/index.ts";
import { aiSdkModel, type AiSdkModelOptions } from "../../src/model/ai-sdk.ts";
import { type CachedCall, markedCacheServer } from "../support/marked-cache-server.ts";
import { entriesOf } from "../support/journal-probes.ts";

const look = defineTool({
  name: "look",
  description: "Looks something up.",
  parameters: z.object({ at: z.number() }),
  effect: "none",
  execute: ({ at }) => `${at}: ${"a fact. ".repeat(40)}`,
});

const instructions = "Follow the rules. ".repeat(500);
const price = {
  inputPerMillion: 3,
  cachedInputPerMillion: 0.3,
  cacheWritePerMillion: 3.75,
  longCacheWritePerMillion: 6,
  outputPerMillion: 15,
};

interface Play {
  readonly history?: HistoryCompiler;
  readonly options?: AiSdkModelOptions;
  /** Calls of the tool in each turn. */
  readonly rounds: number;
  readonly turns: number;
}

/** Turns of one agent; each is run by a process of its own, as after a restart. */
async function played({ history = fullHistory(), options, rounds, turns }: Play) {
  const server = await markedCacheServer((index) => (index % (rounds + 1) < rounds ? "call" : "text"));
  const stores = memoryStores();
  const agent = () =>
    defineAgent({
      name: "clerk",
      model: aiSdkModel(server.model, options),
      instructions,
      tools: [look],
      history,
      budget: { maxSteps: 100, maxCost: 5 },
    });
  let last: Awaited<ReturnType<typeof run>> | undefined;
  for (let turn = 0; turn < turns; turn += 1) {
    last = await run(agent(), `Question ${turn}?`, { stores, agentId: "desk", prices: { "claude-test": price } });
  }
  return { ...server, stores, last };
}

function shareOf(calls: readonly CachedCall[]): number {
  const read = calls.reduce((sum, one) => sum + one.read, 0);
  const all = calls.reduce((sum, one) => sum + one.read + one.written + one.rest, 0);
  return read / all;
}

describe("the share of a prompt that the provider has cached", () => {
  test.each([
    ["the whole history, over 20 steps of two processes", { history: fullHistory(), rounds: 9, turns: 2 }],
    [
      "a window that moves in blocks, over 20 turns of 20 processes",
      { history: windowHistory(10), rounds: 0, turns: 20 },
    ],
    ["a window over turns with tools", { history: windowHistory(12), rounds: 1, turns: 10 }],
    [
      "old results that are left out in blocks, less what these save",
      // Each block of results that is left out is written once more, without them.
      { history: elideResults({ keepRounds: 5, overCharacters: 100 }), rounds: 9, turns: 2, least: 0.85 },
    ],
  ])(
    "is at least nine tenths with %s",
    async (_title, { least = 0.9, ...play }: Play & { readonly least?: number }) => {
      const { calls } = await played(play);
      expect(calls).toHaveLength(20);
      expect(shareOf(calls)).toBeGreaterThanOrEqual(least);
      expect(Math.max(...calls.map(({ marks }) => marks))).toBe(4);
    },
  );

  test("is smaller where the window moves with every message, and nothing without marks", async () => {
    const sliding = await played({ history: windowHistory(10, { upTo: 10 }), rounds: 0, turns: 20 });
    const blocks = await played({ history: windowHistory(10), rounds: 0, turns: 20 });
    expect(shareOf(sliding.calls)).toBeLessThan(shareOf(blocks.calls));
    const off = await played({ options: { cache: "off" }, rounds: 2, turns: 1 });
    expect(off.calls.map(({ read, marks }) => [read, marks])).toEqual([
      [0, 0],
      [0, 0],
      [0, 0],
    ]);
  });

  test("an answer with more than 20 blocks is found again by the mark on the prompt before it", async () => {
    const { calls } = await played({ rounds: 30, turns: 1 });
    const [, ...later] = calls;
    expect(later).toHaveLength(30);
    expect(later.filter(({ read, written }) => read <= written)).toEqual([]);
  });
});

describe("the cost of a cached prompt", () => {
  test.each([
    ["5 minutes", {}, price.cacheWritePerMillion],
    ["an hour", { cacheTtl: "1h" } as const, price.longCacheWritePerMillion],
  ])("is exact for entries of %s, and never above what was reserved", async (_title, options, writeRate) => {
    const { calls, last, stores } = await played({ options, rounds: 4, turns: 1 });
    const micros = calls.reduce(
      (sum, { read, written, rest }) => sum + Math.ceil(rest * 3 + read * 0.3 + written * writeRate + 10 * 15 - 1e-9),
      0,
    );
    expect(last?.spent.tree).toMatchObject({
      cachedInputTokens: calls.reduce((sum, { read }) => sum + read, 0),
      cacheWriteTokens: calls.reduce((sum, { written }) => sum + written, 0),
      cost: micros / 1_000_000,
    });
    const entries = await entriesOf(stores, "desk");
    const reserved = entries.flatMap((entry) =>
      entry.type === "model.requested" ? entry.reservation?.costMicros : [],
    );
    const settled = entries.flatMap((entry) => (entry.type === "model.responded" ? entry.settlement.costMicros : []));
    expect(settled).toHaveLength(5);
    for (const [index, cost] of settled.entries()) expect(cost).toBeLessThanOrEqual(reserved[index] ?? 0);
    // The first call writes nearly all of its prompt: the reservation covers all of it at the rate of its lifetime.
    const [first] = entries.flatMap((entry) => (entry.type === "model.requested" ? entry.ask : []));
    expect(reserved[0]).toBe(
      Math.ceil((first?.promptTokens ?? 0) * writeRate + (first?.outputTokens ?? 0) * price.outputPerMillion),
    );
  });

  test("an unknown rate of the longer lifetime is refused under maxCost", async () => {
    const server = await markedCacheServer(() => "text");
    const { longCacheWritePerMillion: _rate, ...known } = price;
    const agent = defineAgent({
      name: "clerk",
      model: aiSdkModel(server.model, { cacheTtl: "1h" }),
      price: known,
      budget: { maxCost: 1 },
    });
    await expect(run(agent, "Question?")).rejects.toThrow(/longer lifetime.*longCacheWritePerMillion/);
    expect(server.calls).toEqual([]);
  });
});
