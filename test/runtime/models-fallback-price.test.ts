import { expect, it } from "vitest";
import { defineAgent, type LanguageModel } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { describeRuntimes } from "../support/runtimes.ts";

const prices = {
  main: { inputPerMillion: 1, outputPerMillion: 1 },
  spare: { inputPerMillion: 10, outputPerMillion: 10 },
  "other/spare": { inputPerMillion: 100, outputPerMillion: 100 },
};
const usage = { inputTokens: 1_000, outputTokens: 0 };

describeRuntimes("the price of an answer", (stage) => {
  it.each<{ answered: string; adapter?: { provider: string; model: string }; cost: number; billed?: string }>([
    { answered: "main", cost: 0.001 },
    { answered: "main-2026-01-31", cost: 0.001 },
    { answered: "not listed", cost: 0.001 },
    { answered: "spare", cost: 0.01, billed: "spare" },
    { answered: "spare", adapter: { provider: "other", model: "spare" }, cost: 0.1, billed: "spare" },
    { answered: "spare-2026-01-31", adapter: { provider: "other", model: "spare" }, cost: 0.1, billed: "spare" },
  ])(
    "is that of the model that answered: $answered of $adapter",
    async ({ answered, adapter, cost, billed = "main" }) => {
      const scripted = scriptedModel(() => ({ text: "ok", usage }), { name: "main", provider: "mine" });
      const model: LanguageModel = {
        name: "main",
        provider: "mine",
        countPromptTokens: () => 1_000,
        generate: async (request, options) => ({
          ...(await scripted.generate(request, options)),
          model: answered,
          ...(adapter ? { adapter } : {}),
        }),
      };
      for (const price of [undefined, prices.main]) {
        const definition = defineAgent({ name: "worker", model, ...(price ? { price } : {}) });
        const runtime = await stage().open({ agents: [definition], prices });
        const agent = await runtime.agent("worker", { agentId: price ? "fixed" : "listed", budget: { maxCost: 1 } });
        await agent.start();
        const { spent } = await agent.executeTurn("go").result;
        expect(spent.own.cost).toBe(price ? 0.001 : cost);
        expect(Object.entries(spent.byModel)).toEqual([
          [price ? "main" : billed, expect.objectContaining({ cost: price ? 0.001 : cost })],
        ]);
        await runtime.shutdown();
      }
    },
  );
});
