import { afterEach, expect, it } from "vitest";
import { z } from "zod";
import {
  type AgentOptions,
  defineAgent,
  defineTool,
  type LanguageModel,
  ModelError,
  type ModelResponse,
  textOf,
} from "../../src/index.ts";
import { entriesOfType, orderFault } from "../support/journal-probes.ts";
import { modelSending, stopServers } from "../support/model-calls.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { adapter, callOf, rightAnswer } from "../support/seam-play.ts";
import { createGate } from "../support/turn-probes.ts";

afterEach(stopServers);

const deep = `${'{"a":'.repeat(3_000)}1${"}".repeat(3_000)}`;

const look = defineTool({
  name: "look",
  description: "Looks at a place.",
  parameters: z.object({ place: z.string() }),
  effect: "none",
  execute: ({ place }) => `seen: ${place}`,
});

describeRuntimes(
  "answers of models",
  (stage) => {
    const played = async (model: LanguageModel, options: Partial<AgentOptions> = {}) => {
      const definition = defineAgent({ name: "worker", model, tools: [look], maxModelAttempts: 2, ...options });
      const runtime = await stage().open({ agents: [definition], random: () => 0 });
      const agent = await runtime.agent("worker", { agentId: "worker-1" });
      await agent.start();
      const result = await agent.executeTurn("go").result;
      const [account] = (await runtime.accounts("worker-1")).filter(({ id }) => id === "turn:worker-1#1");
      const warnings = await entriesOfType(stage().look(), "worker-1", "warning");
      return { result, account, warnings, messages: await agent.getMessages() };
    };

    it("arguments given as an object are converted to text, and a call without an id gets one", async () => {
      const [call] = callOf("look").toolCalls;
      const given = { ...call, id: undefined, arguments: { place: "roof" } };
      const answer = { ...callOf("look"), content: undefined, toolCalls: [given, given] };
      const { result, messages } = await played(adapter(() => answer));
      expect(result.status).toBe("completed");
      expect(messages.filter(({ role }) => role === "tool").map(({ content }) => textOf(content))).toEqual([
        "seen: roof",
        "seen: roof",
      ]);
      expect(orderFault(messages)).toBeUndefined();
      const calls = messages.flatMap((message) => (message.role === "assistant" ? (message.toolCalls ?? []) : []));
      expect(calls.map((one) => one.arguments)).toEqual(['{"place":"roof"}', '{"place":"roof"}']);
      expect(new Set(calls.map(({ providerId }) => providerId)).size).toBe(2);
    });

    it.each<[string, unknown, RegExp]>([
      ["nothing", undefined, /it is undefined; it must be an object with content/],
      ["no content", { ...rightAnswer, content: undefined }, /its content is undefined; it must be a text/],
      ["a number as content", { ...rightAnswer, content: 5 }, /its content is 5; it must be a text/],
      ["a call without a name", { ...rightAnswer, toolCalls: [{ id: "1" }] }, /toolCalls\[0\]\.name is undefined/],
      [
        "arguments of 3,000 levels",
        { ...callOf("look"), toolCalls: [{ id: "1", name: "look", arguments: JSON.parse(deep) as unknown }] },
        /toolCalls\[0\]\.arguments are not valid JSON: a\.a.*more than 200 levels/,
      ],
    ])("%s as an answer is a model error, retried, and settled at its reported usage", async (_what, answer, words) => {
      const { result, account } = await played(adapter(() => answer));
      expect(result).toMatchObject({ status: "failed", error: { code: "model_error", retryable: true } });
      expect(result.error?.message).toMatch(words);
      const failed = await entriesOfType(stage().look(), "worker-1", "model.failed");
      expect(failed).toHaveLength(2);
      expect(await entriesOfType(stage().look(), "worker-1", "model.responded")).toEqual([]);
      expect(account?.reserved).toEqual({ tokens: 0, costMicros: 0 });
      // An answer of `undefined` has no usage: it is settled in full.
      const told = { used: account?.used.tokens, unconfirmed: account?.unconfirmed.tokens };
      const inFull = told.unconfirmed;
      expect(told).toEqual(answer === undefined ? { used: inFull, unconfirmed: inFull } : { used: 14, unconfirmed: 0 });
    });

    it.each(["error", "other", "a reason of next year"])(
      "one with the finish reason %s counts as broken off",
      async (reason) => {
        const { result, account } = await played(adapter(() => ({ ...rightAnswer, finishReason: reason })));
        expect(result).toMatchObject({ status: "failed", error: { code: "model_error", retryable: true } });
        expect(result.error?.message).toContain(`the finish reason is "${reason}"`);
        expect(account?.used.tokens).toBe(14);
      },
    );

    it.each([
      ["end_turn", "completed"],
      ["max_tokens", "finish_reason"],
      ["unknown", "completed"],
      [undefined, "completed"],
    ])("one with the finish reason %s counts as complete", async (finishReason, stopReason) => {
      const { result } = await played(adapter(() => ({ ...rightAnswer, finishReason })));
      expect(result).toMatchObject({ status: "completed", text: "done", stopReason });
    });

    it.each(["content-filter", "content_filter"])(
      "one with the finish reason %s is a refusal",
      async (finishReason) => {
        const { result, account } = await played(adapter(() => ({ ...rightAnswer, finishReason })));
        expect(result).toMatchObject({ status: "stopped", text: "done", stopReason: "refusal" });
        expect(account?.used.tokens).toBe(7);
      },
    );

    it.each<[string, unknown]>([
      ["none", undefined],
      ["empty", {}],
      ["negative", { inputTokens: -1_000, outputTokens: -1_000 }],
      ["NaN", { inputTokens: Number.NaN, outputTokens: Number.NaN }],
      ["infinite", { inputTokens: Number.POSITIVE_INFINITY, outputTokens: 1 }],
      ["a fraction", { inputTokens: 12.5, outputTokens: 1 }],
      ["a text", { inputTokens: "01", outputTokens: "01" }],
      ["above the largest safe integer", { inputTokens: 2 ** 60, outputTokens: 1 }],
      ["more than a call can use", { inputTokens: 5, outputTokens: 2_000_000_000 }],
    ])("usage that is %s is counted locally, flagged as estimated, and causes a warning", async (_what, usage) => {
      const { result, account, warnings } = await played(adapter(() => ({ ...rightAnswer, usage })));
      expect(result).toMatchObject({ status: "completed", text: "done", usage: { estimated: true } });
      const { inputTokens, outputTokens } = result.usage;
      expect(inputTokens).toBeGreaterThanOrEqual(1);
      expect(inputTokens + outputTokens).toBeLessThan(1_000);
      expect(account?.used.tokens).toBe(inputTokens + outputTokens);
      expect(account?.models["foreign"]).toMatchObject({ calls: 1, estimatedCalls: 1, unconfirmedCalls: 0 });
      expect(warnings).toMatchObject([{ code: "usage_not_true" }]);
      expect(warnings[0]?.message).toMatch(/the model's adapter reported .*an impossible count; it was counted here/);
    });

    it("an implausible usage field is left out, the rest is billed, and a warning is emitted", async () => {
      const usage = { inputTokens: 100, outputTokens: 10, cachedInputTokens: -50 };
      const { result, account, warnings } = await played(adapter(() => ({ ...rightAnswer, usage })));
      expect(result.usage).toMatchObject({ inputTokens: 100, outputTokens: 10, cachedInputTokens: 0 });
      expect(account?.used.tokens).toBe(110);
      expect(warnings[0]?.message).toContain("cachedInputTokens: -50, an impossible count; it was left out");
    });

    it.each([
      [{ cachedInputTokens: 101 }, "cachedInputTokens: 101 of 100"],
      [{ reasoningTokens: 1_000_000 }, "reasoningTokens: 1000000 of 10"],
    ])("a usage detail that exceeds its total, %o, is left out with a warning", async (part, words) => {
      const usage = { inputTokens: 100, outputTokens: 10, ...part };
      const { result, warnings } = await played(adapter(() => ({ ...rightAnswer, usage })));
      expect(result.usage).toMatchObject({
        inputTokens: 100,
        outputTokens: 10,
        cachedInputTokens: 0,
        reasoningTokens: 0,
      });
      expect(warnings[0]?.message).toContain(`${words}, an impossible count; it was left out`);
    });

    it.each(["reasoning_details", "tool_calls"])("%s of 3,000 levels are left out with a warning", async (field) => {
      const details = field === "reasoning_details" ? `[{"type":"reasoning.text","data":${deep}}]` : "[]";
      const calls = `[{"id":"1","function":{"name":"look","arguments":"{}"},"extra_content":${deep}}]`;
      const own = field === "tool_calls" ? `"tool_calls":${calls}` : `"reasoning_details":${details}`;
      const usage = '{"prompt_tokens":7,"completion_tokens":3}';
      const body = `{"id":"c","choices":[{"message":{"content":"hello",${own}},"finish_reason":"stop"}],"usage":${usage}}`;
      const served = await modelSending(body);
      const { result, warnings, messages } = await played(served, { budget: { maxSteps: 1 } });
      expect(result.status).toBe(field === "tool_calls" ? "stopped" : "completed");
      expect(warnings).toMatchObject([{ code: "reasoning_lost" }]);
      expect(warnings[0]?.message).toMatch(/more than 200 levels/);
      expect(messages.some((message) => message.role === "assistant" && message.reasoning !== undefined)).toBe(false);
    });

    it("an adapter that ignores its signal blocks neither the abort nor the code that called it", async () => {
      const neverEnding = createGate<ModelResponse>();
      const waits = createGate();
      const model = adapter(() => rightAnswer, { generate: () => neverEnding.pass() });
      const hooks: AgentOptions["hooks"] = {
        async beforeLlm(_draft, run) {
          if (run.turnId.endsWith("#1")) return;
          await run.generate({ messages: [{ role: "user", content: "what?" }] }).catch(() => waits.pass());
        },
      };
      const runtime = await stage().open({ agents: [defineAgent({ name: "worker", model, hooks })] });
      const agent = await runtime.agent("worker", { agentId: "worker-1" });
      await agent.start();
      for (const calls of [1, 2]) {
        const turn = agent.executeTurn("go");
        await neverEnding.reached(calls);
        await turn.abort("enough");
        expect((await turn.result).status).toBe("stopped");
      }
      await waits.reached();
      waits.open();
      for (const { reserved, used } of await runtime.accounts("worker-1")) {
        expect(reserved).toEqual({ tokens: 0, costMicros: 0 });
        expect(used.tokens).toBeGreaterThan(0);
      }
    });

    it("a retry delay of NaN from an adapter becomes a valid time", async () => {
      let isFirst = true;
      const model = adapter(() => {
        if (!isFirst) return rightAnswer;
        isFirst = false;
        throw new ModelError("busy", { retryable: true, mayHaveBeenSent: false, retryAfterMs: Number.NaN });
      });
      expect((await played(model)).result.status).toBe("completed");
    });
  },
  ["memory", "sqlite", "redis"],
);
