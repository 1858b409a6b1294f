// The matchers of `troupe/testing/matchers`: each passes for the good run, and fails for a wrong one with a message that shows it.
import "../../src/testing/matchers.ts";
import { describe, expect, type TaskMeta, test } from "vitest";
import { InvalidInputError } from "../../src/index.ts";
import { type CaseResult, judge, runCase } from "../../src/testing/index.ts";
import { classicValues, hostile } from "../support/wrong-values.ts";
import { desk, judgeModel, prices, team } from "./evals-cast.ts";

const ended = new Map<string, { readonly meta: TaskMeta; readonly agentIds: readonly string[] }>();

const good = await runCase(desk(), "Refund order 7.", { prices });
const twice = await runCase(desk("pays twice"), "Refund order 7.", { prices });
const unasked = await runCase(desk("pays unasked"), "Refund order 7.", { prices });
const wrongOrder = await runCase(desk("wrong order"), "Refund order 7.", { prices });
const wrongAmount = await runCase(desk("wrong amount"), "Refund order 7.", { prices });
const talking = await runCase(desk("talks on"), "Refund order 7.", { prices });
const failing = await runCase(desk("fails"), "Refund order 7.", { prices });

function failureOf(check: () => void): string {
  try {
    check();
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
  throw new Error("the matcher did not fail");
}

describe("toHaveCalledTools", () => {
  test.each([
    [["look", "refund"], "strict"],
    [["refund", "look"], "unordered"],
    [["refund"], "superset"],
    [["look", "refund", "mail"], "subset"],
    [
      [
        { name: "look", args: { order: "7" } },
        { name: "refund", args: { order: expect.any(String) } },
      ],
      "strict",
    ],
  ] as const)("%j %s", (expected, mode) => {
    expect(good).toHaveCalledTools(expected, { mode });
  });

  test.each([
    [twice, ["look", "refund"], "strict", /call 3 is expected to be none: refund\(\{"order":"7"\}\) → refunded 7/],
    [unasked, ["look", "refund"], "strict", /call 3 is expected to be none/],
    [failing, ["look"], "strict", /call 1 is expected to be look: there is none/],
    [good, ["refund", "look"], "strict", /call 1 is expected to be refund: look/],
    [twice, ["look", "refund"], "unordered", /not expected: refund/],
    [good, ["look", "refund", "refund"], "unordered", /missing: refund/],
    [good, ["mail"], "superset", /missing: mail/],
    [good, ["look"], "subset", /not expected: refund/],
    [wrongOrder, [{ name: "look", args: { order: "7" } }], "superset", /missing: look\(\{"order":"7"\}\)/],
  ] as const)("a wrong run %#", (result, expected, mode, message) => {
    const failure = failureOf(() => expect(result).toHaveCalledTools(expected, { mode }));
    expect(failure).toMatch(message);
    expect(failure).toContain("The run:\n  input: Refund order 7.");
    expect(result).not.toHaveCalledTools(expected, { mode });
  });

  test("a call that fits several expected ones is paired so that all are met", () => {
    const calls = [
      { name: "look", args: {} },
      { name: "look", args: { order: "7" } },
    ];
    const result: CaseResult = {
      ...good,
      toolCalls: ["7", "8"].map((order) => ({
        agentName: "desk",
        name: "look",
        arguments: { order },
        result: "",
        isError: false,
      })),
    };
    expect(result).toHaveCalledTools(calls, { mode: "unordered" });
  });

  test("args equal refuses further fields", () => {
    const expected = [{ name: "look", args: {} }, "refund"];
    expect(good).toHaveCalledTools(expected);
    expect(good).not.toHaveCalledTools(expected, { args: "equal" });
  });

  test("compares the calls of the root agent, or those of the named one", async () => {
    const result = await runCase(team(), "Look.");
    expect(result).toHaveCalledTools(["reader"]);
    expect(result).toHaveCalledTools(["look"], { agent: "reader" });
    expect(failureOf(() => expect(result).toHaveCalledTools([], { agent: "reader" }))).toContain("reader: look(");
  });
});

describe("toCostAtMost, toTakeAtMost, toEndWith, toMatchOutput", () => {
  test("pass for the good run", () => {
    expect(good).toCostAtMost(0.01);
    expect(good).toTakeAtMost({ steps: 3, tokens: 5_000, ms: 60_000 });
    expect(good).toEndWith("completed");
    expect(good).toMatchOutput({ refunded: 40 });
    expect(good).toMatchOutput("refunded");
    expect(good).toMatchOutput(/"refunded":\s*40/g);
    expect(failing).toEndWith("error");
  });

  test("fail for a wrong one", () => {
    expect(failureOf(() => expect(good).toCostAtMost(0))).toMatch(
      /a cost of at most \$0\.000000, and it was \$0\.000\d+/,
    );
    expect(failureOf(() => expect(talking).toTakeAtMost({ steps: 3, tokens: 1 }))).toMatch(
      /took more than expected: 9 of at most 3 steps, \d+ of at most 1 tokens/,
    );
    expect(failureOf(() => expect(failing).toEndWith("completed"))).toMatch(
      /expected the turn to end with "completed", and it ended with "error"[^]*error: .*the model is away/,
    );
    expect(failureOf(() => expect(wrongAmount).toMatchOutput({ refunded: 40 }))).toMatch(
      /refunded.*40[^]*refunded.*4\b/,
    );
    expect(failureOf(() => expect(failing).toMatchOutput({ refunded: 40 }))).toContain("the run has no output");
    expect(failureOf(() => expect(good).toMatchOutput("euro"))).toContain('expected the text to contain "euro"');
    expect(failureOf(() => expect(good).toMatchOutput(/euro/))).toContain("expected the text to match /euro/");
    expect(failureOf(() => expect(good).not.toEndWith("completed"))).toContain('not to end with "completed"');
  });

  test("an unknown price fails, with not too", async () => {
    const result = await runCase(desk(), "Refund order 7.");
    const unknown =
      /the cost is unknown, because there is no price for the model "scripted"; give prices to runCase\(\)/;
    expect(() => expect(result).toCostAtMost(1)).toThrow(unknown);
    expect(() => expect(result).not.toCostAtMost(1)).toThrow(unknown);
  });
});

const scored = (score: number) => ({ model: judgeModel([{ number: 1, reason: "It says so.", score }]) });

describe("toSatisfyJudge", () => {
  test("passes and fails by the score, with the reasons", async () => {
    await expect(good).toSatisfyJudge("It refunds the order.", scored(0.9));
    await expect(good).not.toSatisfyJudge("It is rude.", scored(0.1));
    await expect(good).toSatisfyJudge(["It refunds the order."], { ...scored(0.5), threshold: 0.5 });
    await expect(expect(wrongOrder).toSatisfyJudge("It refunds order 7.", scored(0.2))).rejects.toThrow(
      "the judge gave 0.20, with a threshold of 0.7\n  0.20 It refunds order 7.: It says so.",
    );
  });

  test("fails without a verdict, with not too", async () => {
    const broken = { model: judgeModel("nonsense") };
    await expect(expect(good).toSatisfyJudge("It is polite.", broken)).rejects.toThrow(/gave no verdict/);
    await expect(expect(good).not.toSatisfyJudge("It is rude.", broken)).rejects.toThrow(/gave no verdict/);
  });
});

describe("wrong values", () => {
  const values = [...classicValues(), hostile()];

  test("in the place of a result", () => {
    const promise = runCase(desk(), "Refund order 7.");
    expect(() => expect(promise).toEndWith("completed")).toThrow(
      "toEndWith() needs the result of runCase(), not a promise; await it first",
    );
    for (const value of values) {
      expect(thrownBy(() => expect(value).toEndWith("completed"))).toBeInstanceOf(InvalidInputError);
      expect(thrownBy(() => expect(value).not.toCostAtMost(1))).toBeInstanceOf(InvalidInputError);
    }
  });

  test("as arguments and options", () => {
    const strange: Error[] = [];
    for (const value of values) {
      const checks = [
        () => expect(good).toHaveCalledTools(value as never),
        () => expect(good).toHaveCalledTools([value] as never),
        () => expect(good).toHaveCalledTools(["look", "refund"], { mode: value as never }),
        () => expect(good).toHaveCalledTools(["look", "refund"], { args: value as never }),
        () => expect(good).toHaveCalledTools(["look", "refund"], { agent: value as never }),
        () => expect(good).toTakeAtMost({ steps: value as never }),
        () => expect(good).toTakeAtMost({ tokens: value as never }),
        () => expect(good).toTakeAtMost({ ms: value as never }),
      ];
      for (const check of checks) {
        const error = thrownBy(check);
        if (error && !error.message.includes("The run:") && !(error instanceof InvalidInputError)) strange.push(error);
      }
      expect(() => expect(good).toEndWith(value as never)).toThrow("toEndWith(): the stop reason is");
    }
    expect(strange).toEqual([]);
    for (const value of [-1, Number.NaN, "1", null]) {
      expect(() => expect(good).toCostAtMost(value as never)).toThrow("toCostAtMost(): its dollars is");
    }
    expect(() => expect(good).toTakeAtMost({})).toThrow("needs at least one of steps, tokens and ms");
    expect(() => expect(good).toMatchOutput(5 as never)).toThrow("toMatchOutput(): the expected output is 5");
    expect(() => expect(good).toHaveCalledTools([{ tool: "look" }] as never)).toThrow("did you mean name?");
    expect(() => expect(good).toTakeAtMost({ time: 5 } as never)).toThrow("did you mean ms?");
    expect(() => expect(good).toHaveCalledTools([], { order: "any" } as never)).toThrow("did you mean mode?");
  });
});

function thrownBy(check: () => void): Error | undefined {
  try {
    check();
    return undefined;
  } catch (error) {
    return error as Error;
  }
}

describe("task.meta.troupe", () => {
  test.concurrent.for(["one", "two", "three"])("%s", async (name, { task }) => {
    const { agentId } = await runCase(desk(), `Refund order 7, ${name}.`, { prices });
    const { run } = await judge(good, "It is good.", { model: judgeModel([{ number: 1, reason: "Yes.", score: 1 }]) });
    expect(task.meta.troupe).toBeUndefined();
    // The figures are set when the test has ended.
    ended.set(name, { meta: task.meta, agentIds: [agentId, run.agentId] });
  });

  test("has the runs of each test, although the tests ran at the same time", ({ task }) => {
    expect(task.meta.troupe).toBeUndefined();
    expect([...ended.keys()].toSorted()).toEqual(["one", "three", "two"]);
    for (const { meta, agentIds } of ended.values()) {
      expect(meta.troupe?.map(({ agentId }) => agentId)).toEqual(agentIds);
      expect(meta.troupe).toMatchObject([
        { kind: "case", agentName: "desk", stopReason: "completed", steps: 3, toolCalls: 2, cost: expect.any(Number) },
        { kind: "judge", agentName: "judge", steps: 1, toolCalls: 0, cost: null },
      ]);
    }
  });
});
