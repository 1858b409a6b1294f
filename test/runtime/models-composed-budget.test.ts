import * as fc from "fast-check";
import { expect, it } from "vitest";
import { z } from "zod";
import {
  defineAgent,
  defineTool,
  fallbackModel,
  type LanguageModel,
  ModelError,
  routedModel,
  subagent,
} from "../../src/index.ts";
import { type ScriptedAnswer, scriptedModel } from "../../src/testing/index.ts";
import { randomCases } from "../support/full.ts";
import { elapse, entriesOf } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";

const prices = {
  a: { inputPerMillion: 1, outputPerMillion: 3 },
  b: { inputPerMillion: 40, outputPerMillion: 90 },
  c: { inputPerMillion: 7, outputPerMillion: 11, perCall: 0.001 },
};

type Answer = "text" | "tool" | "child" | "generate" | "refused" | "cut" | "lost" | "unsent" | "too long" | "no key";

const answers = fc.constantFrom<Answer>(
  "text",
  "tool",
  "child",
  "generate",
  "refused",
  "cut",
  "lost",
  "unsent",
  "too long",
  "no key",
);

const plans = fc.record({
  answers: fc.record({
    a: fc.array(answers, { maxLength: 8 }),
    b: fc.array(answers, { maxLength: 8 }),
    c: fc.array(answers, { maxLength: 8 }),
  }),
  form: fc.constantFrom("fallback", "routed", "fallback of routed", "routed of fallbacks", "fallback of fallback"),
  picks: fc.array(fc.nat(1), { minLength: 1, maxLength: 6 }),
  maxCost: fc.constantFrom(undefined, 0.02, 0.2, 5),
  maxTokens: fc.constantFrom(undefined, 3_000, 50_000),
  strict: fc.boolean(),
  breaker: fc.boolean(),
});
type Plan = typeof plans extends fc.Arbitrary<infer T> ? T : never;

function scripted(name: keyof typeof prices, given: readonly Answer[]): LanguageModel {
  return scriptedModel((_request, { index }) => answerOf(given[index] ?? "text", index), { name, provider: name });
}

function answerOf(answer: Answer, index: number): ScriptedAnswer {
  const usage = { inputTokens: 30 + index, outputTokens: 5 + index };
  const failed = (options: Partial<ConstructorParameters<typeof ModelError>[1]>): ScriptedAnswer => ({
    error: new ModelError(answer, { retryable: true, mayHaveBeenSent: true, ...options }),
  });
  switch (answer) {
    case "text":
      return { text: "fine", usage };
    case "tool":
    case "child":
    case "generate":
      return { toolCalls: [{ name: answer, arguments: answer === "child" ? { input: "go" } : {} }], usage };
    case "refused":
      return failed({ status: 503 });
    case "cut":
      return failed({ partialInputTokens: 20, partialOutputTokens: 3 });
    case "lost":
      return failed({});
    case "unsent":
      return failed({ mayHaveBeenSent: false });
    case "too long":
      return failed({ retryable: false, status: 400, details: { kind: "context_length" } });
    case "no key":
      return failed({ retryable: false, status: 401 });
    default:
      throw new Error(`no answer ${String(answer satisfies never)}`);
  }
}

function modelOf({ answers: given, form, picks, breaker }: Plan): LanguageModel {
  const [a, b, c] = [scripted("a", given.a), scripted("b", given.b), scripted("c", given.c)];
  const options = breaker ? {} : { breaker: false as const };
  let picked = 0;
  const routed = (one: LanguageModel, other: LanguageModel): LanguageModel =>
    routedModel(() => (picks[picked++ % picks.length] === 1 ? other : one), { models: [one, other] });
  switch (form) {
    case "fallback":
      return fallbackModel([a, b, c], options);
    case "routed":
      return routed(a, b);
    case "fallback of routed":
      return fallbackModel([routed(a, b), c], options);
    case "routed of fallbacks":
      return routed(fallbackModel([a, b], options), fallbackModel([c, a], options));
    default:
      return fallbackModel([fallbackModel([a, b], options), c], options);
  }
}

describeRuntimes("budgets over fallbacks", (stage) => {
  it("the accounts are the sum of the attempts, each at the price of the model that was called, and no limit is exceeded", async () => {
    let number = 0;
    const property = fc.asyncProperty(plans, async (plan) => {
      number += 1;
      const agentId = `w${number}`;
      const model = modelOf(plan);
      const tool = defineTool({
        name: "tool",
        description: "x",
        parameters: z.object({}),
        effect: "none",
        execute: () => "ok",
      });
      const generate = defineTool({
        name: "generate",
        description: "x",
        parameters: z.object({}),
        effect: "none",
        execute: async (_args, run) => (await run.generate({ messages: [{ role: "user", content: "sum" }] })).content,
      });
      // The child shares the model, and so its scripts.
      const child = defineAgent({ name: "child", model, maxOutputTokens: 50, budget: { maxSteps: 3 } });
      const tools = [tool, generate, subagent(child, { description: "x" })];
      const definition = defineAgent({ name: "worker", model, tools, maxOutputTokens: 50, budget: { maxSteps: 6 } });
      const runtime = await stage().open({ agents: [definition], prices, random: () => 0.5 });
      const { maxCost, maxTokens, strict } = plan;
      const budget = {
        strict,
        ...(maxCost === undefined ? {} : { maxCost }),
        ...(maxTokens === undefined ? {} : { maxTokens }),
      };
      const agent = await runtime.agent("worker", { agentId, budget });
      await agent.start();
      await elapse(stage().clock, agent.executeTurn("go").result, 500);
      const stores = stage().look();
      const accounts = await stores.accounts("default", agentId);
      const ids = (await runtime.list({})).filter((one) => one.rootAgentId === agentId).map((one) => one.agentId);
      const entries = (await Promise.all(ids.map((id) => entriesOf(stores, id)))).flat();
      const requests = entries.filter(
        (entry) => entry.type === "model.requested" || entry.type === "generate.requested",
      );
      const settlements = entries.flatMap((entry) =>
        "settlement" in entry && entry.settlement ? [entry.settlement] : [],
      );
      const granted = requests.filter(({ reservation }) => reservation !== null);
      expect(settlements).toHaveLength(granted.length);
      for (const { model: name, provider, ask, reservation } of granted) {
        expect(provider).toBe(name);
        expect(reservation?.model).toBe(name);
        expect(ask.price).toEqual(prices[name as keyof typeof prices]);
      }
      const life = accounts.find(({ id }) => id === `agent:${agentId}`);
      const sum = (pick: (one: (typeof settlements)[number]) => number) =>
        settlements.reduce((total, one) => total + pick(one), 0);
      expect(life?.used.tokens).toBe(sum(({ tokens }) => tokens));
      expect(life?.used.costMicros).toBe(sum(({ costMicros }) => costMicros));
      for (const { reserved, limits, used } of accounts) {
        expect(reserved).toEqual({ tokens: 0, costMicros: 0 });
        const { maxTokens: mostTokens = Infinity, maxCostMicros = Infinity } = strict ? limits : {};
        expect(used.tokens).toBeLessThanOrEqual(mostTokens);
        expect(used.costMicros).toBeLessThanOrEqual(maxCostMicros);
      }
      await stores.close();
      await runtime.shutdown();
    });
    await fc.assert(property, { numRuns: randomCases(300, 30), seed: 39 });
  });
});
