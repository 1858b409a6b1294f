import { expect, onTestFinished, test } from "vitest";
import {
  type AgentOptions,
  createRuntime,
  defineAgent,
  dropOldest,
  fullHistory,
  type LanguageModel,
  memoryStores,
  openaiModel,
  withoutTraces,
} from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { entriesOfType } from "../support/journal-probes.ts";
import { lastThree } from "../support/strict-clerk.ts";
import { startPrefixCacheServer } from "../support/prefix-cache-server.ts";

const long = (words: string): string => `${words} ${"and so on, ".repeat(400)}`;

/** The warnings about the prompt cache after this many turns. */
async function warningsOf(model: LanguageModel, turns: number, options: Partial<AgentOptions>): Promise<string[]> {
  const stores = memoryStores();
  const definition = defineAgent({ name: "clerk", instructions: "Be brief.", ...options, model });
  const runtime = await createRuntime({ agents: [definition], stores });
  const clerk = await runtime.agent("clerk", { agentId: "desk" });
  await clerk.start();
  for (let turn = 0; turn < turns; turn += 1) await clerk.executeTurn(long(`Question ${turn}?`)).result;
  await runtime.shutdown();
  const warnings = await entriesOfType(stores, "desk", "warning");
  return warnings.flatMap(({ code, message }) => (code === "prompt_cache_lost" ? [message] : []));
}

async function cachingModel(): Promise<LanguageModel> {
  const server = await startPrefixCacheServer();
  onTestFinished(() => server.stop());
  return openaiModel("m", { baseURL: server.baseURL, apiKey: "none" });
}

let today = 0;
const causes: readonly { readonly name: string; readonly options: Partial<AgentOptions>; readonly cause: string }[] = [
  { name: "a window", options: { history: lastThree }, cause: 'the history compiler "lastThree"' },
  {
    name: "instructions of each turn",
    options: { instructions: () => `Day ${(today += 1)}.` },
    cause: "the function instructions()",
  },
  {
    name: "a hook of the agent",
    options: {
      hooks: { beforeLlm: (draft) => draft.edit(draft.messages[0]?.id ?? "", long(`${draft.messages.length}`)) },
    },
    cause: "a beforeLlm hook of the agent",
  },
  {
    name: "a hook of a plugin",
    options: {
      plugins: [
        {
          name: "shortener",
          hooks: {
            beforeLlm: (draft) => {
              for (const { id } of draft.messages.slice(0, -1)) draft.remove(id);
            },
          },
        },
      ],
    },
    cause: 'a beforeLlm hook of the plugin "shortener"',
  },
  {
    name: "a compaction in each turn",
    options: { maxMessages: 2, autoCompact: { strategy: dropOldest(), keep: 1 } },
    cause: "a compaction of the conversation",
  },
];

test.each(causes)("$name that loses the prompt cache is named, once", async ({ options, cause }) => {
  const warnings = await warningsOf(await cachingModel(), 9, options);
  expect(warnings).toHaveLength(1);
  expect(warnings[0]).toContain(cause);
  expect(warnings[0]).toMatch(/differs from the one before it in bytes \d+ to \d+/);
});

test("the bytes are those that have changed", async () => {
  const warnings = await warningsOf(await cachingModel(), 9, { instructions: () => `It is day ${(today += 1)}.` });
  const [, from, to] = /bytes (\d+) to (\d+)/.exec(warnings[0] ?? "") ?? [];
  expect(Number(from)).toBeGreaterThanOrEqual("It is day ".length);
  expect(Number(to)).toBeLessThanOrEqual("It is day 100.".length);
});

test.each([fullHistory(), withoutTraces()])("a conversation that only grows warns of nothing", async (history) => {
  expect(await warningsOf(await cachingModel(), 9, { history })).toEqual([]);
});

test("a provider that keeps nothing of an unchanged prefix is named", async () => {
  const usage = { inputTokens: 5_000, outputTokens: 10, cachedInputTokens: 0 };
  const warnings = await warningsOf(
    scriptedModel(() => ({ text: "Yes.", usage })),
    9,
    {},
  );
  expect(warnings).toHaveLength(1);
  expect(warnings[0]).toContain("the provider did not keep it");
});

test.each([
  { why: "reports no cached tokens", usage: { inputTokens: 5_000, outputTokens: 10 } },
  { why: "gets short prompts", usage: { inputTokens: 900, outputTokens: 10, cachedInputTokens: 0 } },
  { why: "reads half of them", usage: { inputTokens: 5_000, outputTokens: 10, cachedInputTokens: 2_500 } },
])("a provider that $why warns of nothing", async ({ usage }) => {
  expect(
    await warningsOf(
      scriptedModel(() => ({ text: "Yes.", usage })),
      9,
      {},
    ),
  ).toEqual([]);
});
