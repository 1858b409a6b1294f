import { describe, expect, test } from "vitest";
import {
  type Budget,
  isEmpty,
  isExhausted,
  limitsOf,
  noAmounts,
  reachedLimit,
  unlimited,
} from "../../src/budget/index.ts";
import { InvalidInputError } from "../../src/errors/index.ts";

describe("a budget as a user writes it", () => {
  test("becomes whole micro-dollars and milliseconds", () => {
    const budget: Budget = {
      maxSteps: 3,
      maxTokens: 1000,
      maxSeconds: 1.5,
      maxCost: 0.29,
      deadline: new Date(5000),
      maxToolCalls: 0,
      maxTreeSteps: 4,
      maxTreeToolCalls: 5,
    };
    expect(limitsOf(budget)).toEqual({
      maxSteps: 3,
      maxTokens: 1000,
      maxActiveMs: 1500,
      maxCostMicros: 290_000,
      deadlineAt: 5000,
      maxToolCalls: 0,
      maxTreeSteps: 4,
      maxTreeToolCalls: 5,
    });
  });

  test("takes a deadline as a date, an ISO text or milliseconds", () => {
    const at = Date.UTC(2030, 0, 1);
    for (const deadline of [new Date(at), "2030-01-01T00:00:00Z", at])
      expect(limitsOf({ deadline })).toEqual({ deadlineAt: at });
  });

  test("that is absent is unlimited, field by field", () => {
    expect(limitsOf()).toEqual(unlimited());
    expect(limitsOf({ maxSteps: undefined })).toEqual({});
  });

  test.each([
    ["maxSteps", -1],
    ["maxSteps", 1.5],
    ["maxTokens", Number.NaN],
    ["maxTokens", Number.POSITIVE_INFINITY],
    ["maxToolCalls", "3"],
    ["maxTreeSteps", null],
    ["maxTreeToolCalls", 2 ** 60],
    ["maxSeconds", -0.1],
    ["maxSeconds", Number.NaN],
    ["maxCost", Number.POSITIVE_INFINITY],
    ["maxCost", 1e300],
    ["deadline", "tomorrow"],
    ["deadline", new Date(Number.NaN)],
    ["deadline", -1],
  ])("refuses %s: %s, and says which field, what it was and what is right", (field, value) => {
    const refused = () => limitsOf({ [field]: value });
    expect(refused).toThrow(InvalidInputError);
    expect(refused).toThrow(`budget.${field} is `);
    expect(refused).toThrow(/leave it out for unlimited/);
  });

  test("refuses a limit that does not exist, and names those that do", () => {
    expect(() => limitsOf({ maxDollars: 3 } as Budget)).toThrow(/budget.maxDollars is not a limit.*maxCost/);
  });
});

describe("how limits are held", () => {
  test("is stored beside them, and is no limit by itself", () => {
    expect(limitsOf({ strict: true, finalAnswer: false })).toEqual({ strict: true, finalAnswer: false });
    expect(isEmpty(limitsOf({ strict: true, finalAnswer: true }))).toBe(true);
  });

  test.each(["strict", "finalAnswer"])("%s takes true or false only", (field) => {
    expect(() => limitsOf({ [field]: 1 })).toThrow(`budget.${field} is 1; it takes true or false, or leave it out`);
  });
});

describe("limits", () => {
  test("are empty only when none is set; a limit of 0 is one", () => {
    expect(isEmpty(unlimited())).toBe(true);
    expect(isEmpty(limitsOf({ maxSteps: 0 }))).toBe(false);
    expect(isEmpty(limitsOf({ deadline: 0 }))).toBe(false);
  });

  test.each([
    ["maxSteps", { maxSteps: 2 }, { steps: 2 }],
    ["maxTreeSteps", { maxTreeSteps: 2 }, { treeSteps: 2 }],
    ["maxToolCalls", { maxToolCalls: 2 }, { toolCalls: 2 }],
    ["maxTreeToolCalls", { maxTreeToolCalls: 2 }, { treeToolCalls: 2 }],
    ["maxTokens", { maxTokens: 2 }, { tokens: 2 }],
    ["maxCostMicros", { maxCost: 0.000002 }, { costMicros: 2 }],
    ["maxActiveMs", { maxSeconds: 0.002 }, { activeMs: 2 }],
  ] as const)("%s is reached at its number, not one before", (name, budget, used) => {
    const limits = limitsOf(budget);
    const oneLess = Object.fromEntries(Object.entries(used).map(([key, value]) => [key, value - 1]));
    expect(reachedLimit(limits, { ...noAmounts, ...oneLess }, 0)).toBeUndefined();
    expect(reachedLimit(limits, { ...noAmounts, ...used }, 0)).toBe(name);
    expect(isExhausted(limits, { ...noAmounts, ...used }, 0)).toBe(true);
  });

  test("a deadline is reached by the clock alone", () => {
    const limits = limitsOf({ deadline: 100 });
    expect(isExhausted(limits, noAmounts, 99)).toBe(false);
    expect(isExhausted(limits, noAmounts, 100)).toBe(true);
  });

  test("without any nothing is ever exhausted; 0 allows nothing from the start", () => {
    const much = Object.fromEntries(Object.keys(noAmounts).map((key) => [key, 1e12]));
    expect(isExhausted(unlimited(), { ...noAmounts, ...much }, 1e15)).toBe(false);
    expect(isExhausted(limitsOf({ maxTokens: 0 }), noAmounts, 0)).toBe(true);
  });
});
