// `runCase()`: one turn of an agent in a runtime of its own, and what it did as plain values.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { z } from "zod";
import { askUser, defineAgent, defineTool, InvalidInputError, openaiModel } from "../../src/index.ts";
import { sqliteStores } from "../../src/stores/sqlite.ts";
import { judge, runCase, type RunCaseOptions, scriptedModel } from "../../src/testing/index.ts";
import { classicValues, hostile } from "../support/wrong-values.ts";
import { desk, judgeModel, prices, team } from "./evals-cast.ts";

beforeEach(() => {
  vi.stubEnv("CI", "");
});
afterEach(() => {
  vi.unstubAllEnvs();
});

describe("runCase", () => {
  test("gives the answer, the calls and what they used", async () => {
    const result = await runCase(desk(), "Refund order 7.", { prices });
    expect(result).toMatchObject({
      agentName: "desk",
      input: "Refund order 7.",
      status: "completed",
      stopReason: "completed",
      output: { order: "7", refunded: 40 },
      steps: 3,
      error: null,
      toolCalls: [
        { agentName: "desk", name: "look", arguments: { order: "7" }, result: "Order 7: 40 dollars", isError: false },
        { agentName: "desk", name: "refund", arguments: { order: "7" }, result: "refunded 7", isError: false },
      ],
    });
    expect(result.spent.tree.calls).toBe(3);
    expect(result.spent.tree.cost).toBeGreaterThan(0);
    expect(result.durationMs).toBeGreaterThan(0);
    expect(result.tree.agents).toHaveLength(1);
    expect(JSON.parse(JSON.stringify(result))).toMatchObject({ steps: 3 });
  });

  test("contains the calls of subagents, after those of the root", async () => {
    const { toolCalls, tree } = await runCase(team(), "Look.");
    expect(toolCalls.map(({ agentName, name }) => `${agentName}: ${name}`)).toEqual(["lead: reader", "reader: look"]);
    expect(tree.agents).toHaveLength(2);
  });

  test("shows refused arguments as the model wrote them", async () => {
    const pay = defineTool({
      name: "pay",
      description: "Pays.",
      parameters: z.object({ amount: z.number() }),
      effect: "once",
      execute: () => "paid",
    });
    const script = [
      {
        toolCalls: [
          { name: "pay", arguments: { amount: "all" } },
          { name: "none", arguments: "{oops" },
        ],
      },
      "Sorry.",
    ];
    const { toolCalls } = await runCase(defineAgent({ name: "a", model: scriptedModel(script), tools: [pay] }), "Pay.");
    expect(toolCalls.map(({ name, arguments: given, isError }) => [name, given, isError])).toEqual([
      ["pay", { amount: "all" }, true],
      ["none", "{oops", true],
    ]);
  });

  test("a failed turn, and one that its budget stopped, are results", async () => {
    const failed = await runCase(desk("fails"), "Refund order 7.");
    expect(failed).toMatchObject({ status: "failed", stopReason: "error", output: undefined });
    expect(failed.error?.message).toContain("the model is away");
    expect(await runCase(desk(), "Refund order 7.", { budget: { maxSteps: 1 } })).toMatchObject({
      status: "stopped",
      stopReason: "steps_limit",
    });
  });

  test("answers requests with decide, and names the option if it is missing", async () => {
    const script = [{ toolCalls: [{ name: "ask_user", arguments: { question: "Which order?" } }] }, "Thanks."];
    const asking = () => defineAgent({ name: "asking", model: scriptedModel(script), tools: [askUser()] });
    await expect(runCase(asking(), "Refund.")).rejects.toThrow(
      /^runCase\(\): the turn waits for a decision: .*"ask_user"; give decide: \(request\) => \(\{ … \}\)$/,
    );
    const { toolCalls } = await runCase(asking(), "Refund.", {
      decide: () => ({ verdict: "answered", result: "Order 7", by: "eval" }),
    });
    expect(toolCalls[0]?.result).toContain("Order 7");
  });

  test("is not affected by what the caller does with its values", async () => {
    const input = [{ type: "text" as const, text: "Refund order 7." }];
    const result = await runCase(desk(), input);
    input.pop();
    expect(result.input).toEqual([{ type: "text", text: "Refund order 7." }]);
  });

  test("calls no server while CI is set, unless that is allowed", async () => {
    const live = defineAgent({
      name: "live",
      model: openaiModel("gpt-5-mini", { apiKey: "none", baseURL: "http://127.0.0.1:9/v1" }),
    });
    vi.stubEnv("CI", "true");
    const refusal = /^runCase\(\): the agent "live" would call the model "gpt-5-mini"/;
    await expect(runCase(live, "Hello.")).rejects.toThrow(refusal);
    await expect(runCase(desk(), "Hello.", { agents: [live] })).rejects.toThrow(refusal);
    await expect(
      judge(await runCase(desk(), "Refund order 7."), "It is polite.", { model: live.model }),
    ).rejects.toThrow(/the agent "judge" would call/);
    vi.stubEnv("TROUPE_EVAL_LIVE", "1");
    expect(await runCase(live, "Hello.", { budget: { maxSeconds: 30 } })).toMatchObject({ status: "failed" });
  });

  test("keeps its run in the store that troupe eval names", async () => {
    const folder = mkdtempSync(join(tmpdir(), "troupe-kept-"));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const file = join(folder, "kept.db");
    vi.stubEnv("TROUPE_EVAL_STORE", file);
    const results = await Promise.all([runCase(desk(), "Refund order 7."), runCase(team(), "Look.")]);
    const stores = sqliteStores(file);
    onTestFinished(() => stores.close());
    const roots = await stores.listAgents({ tenant: "default", rootsOnly: true });
    expect(roots.map(({ agentId }) => agentId).toSorted()).toEqual(results.map(({ agentId }) => agentId).toSorted());
  });
});

describe("runCase: wrong values", () => {
  test("of its options are refused with their name", async () => {
    const names = ["agentId", "agents", "auth", "budget", "clock", "decide", "onEvent", "prices", "settings", "signal"];
    const strange: unknown[] = [];
    for (const name of names) {
      for (const value of [...classicValues(), hostile()]) {
        const outcome = await runCase(desk(), "Refund order 7.", { [name]: value } as RunCaseOptions).catch(
          (error: unknown) => error,
        );
        if (outcome instanceof Error && !(outcome instanceof InvalidInputError)) strange.push([name, outcome]);
      }
    }
    expect(strange).toEqual([]);
    await expect(runCase(desk(), "x", { answers: () => ({}) } as RunCaseOptions)).rejects.toThrow(
      '"answers": did you mean decide?',
    );
    await expect(runCase({} as never, "x")).rejects.toThrow(InvalidInputError);
    await expect(runCase(desk(), 7 as never)).rejects.toThrow(InvalidInputError);
  });
});

describe("judge", () => {
  const polite = { number: 1, reason: "It says please.", score: 1 };

  test("gives a score for each criterion, and its own run", async () => {
    const result = await runCase(desk(), "Refund order 7.");
    const model = judgeModel([{ number: 2, reason: "It refunded 40.", score: 0.5 }, polite]);
    const verdict = await judge(result, ["It is polite.", "It refunds 40."], { model, threshold: 0.8 });
    expect(verdict).toMatchObject({
      pass: false,
      score: 0.75,
      threshold: 0.8,
      criteria: [
        { criterion: "It is polite.", score: 1 },
        { criterion: "It refunds 40.", score: 0.5, reason: "It refunded 40." },
      ],
      run: { agentName: "judge", stopReason: "completed" },
    });
    expect(verdict.run.tree.rows.length).toBeGreaterThan(0);
    const [request] = model.calls;
    expect(JSON.stringify(request?.messages)).toContain("Order 7: 40 dollars");
  });

  test.each([
    [judgeModel([]), /^The judge gave no verdict: it judged criterion 1 0 times/],
    [judgeModel([polite, polite]), /^The judge gave no verdict: it judged criterion 1 2 times/],
    [scriptedModel({ error: new Error("away") }), /^The judge "scripted" gave no verdict: .*away/],
    [scriptedModel("It was fine."), /^The judge "scripted" gave no verdict/],
  ])("gives no verdict on an error", async (model, message) => {
    const result = await runCase(desk(), "Refund order 7.");
    await expect(judge(result, "It is polite.", { model })).rejects.toThrow(message);
  });

  test("stays in its budget", async () => {
    const result = await runCase(desk(), "Refund order 7.");
    await expect(
      judge(result, "It is polite.", { model: judgeModel([polite]), budget: { maxTokens: 10 } }),
    ).rejects.toThrow(/^The judge "scripted-judge" gave no verdict: it ended with token_limit/);
  });

  test("refuses wrong values", async () => {
    const result = await runCase(desk(), "Refund order 7.");
    const model = judgeModel([polite]);
    const strange: unknown[] = [];
    for (const value of [...classicValues(), hostile()]) {
      for (const options of [
        { model, threshold: value },
        { model, budget: value },
        { model, prices: value },
        { model: value },
      ]) {
        const outcome = await judge(result, "It is polite.", options as never).catch((error: unknown) => error);
        if (outcome instanceof Error && !(outcome instanceof InvalidInputError)) strange.push(outcome);
      }
    }
    expect(strange).toEqual([]);
    for (const rubric of [[], "", " ", [""], 5, null, Array.from({ length: 21 }, () => "x")]) {
      await expect(judge(result, rubric as never, { model })).rejects.toThrow(InvalidInputError);
    }
    await expect(judge(result, "x", {} as never)).rejects.toThrow(/model/);
    await expect(judge(result, "x", { model, minScore: 1 } as never)).rejects.toThrow("did you mean threshold?");
  });
});
