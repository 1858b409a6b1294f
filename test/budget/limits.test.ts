import { describe, expect, test } from "vitest";
import {
  bindingOf,
  type Budget,
  isEmpty,
  isExhausted,
  limitNameSchema,
  limitsOf,
  noAmounts,
  nothingBinds,
  reachedLimit,
  remaining,
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
    ["maxSteps", -1, "a whole number of at least 0, or leave it out for unlimited"],
    ["maxSteps", 0.5, "a whole number"],
    ["maxSteps", -0, "a whole number"],
    ["maxTokens", Number.NaN, "a whole number"],
    ["maxTokens", Number.POSITIVE_INFINITY, "a whole number"],
    ["maxTokens", 100n, "a whole number"],
    ["maxToolCalls", "0", "a whole number"],
    ["maxToolCalls", true, "a whole number"],
    ["maxTreeSteps", null, "a whole number"],
    ["maxTreeSteps", [3], "a whole number"],
    ["maxTreeToolCalls", 2 ** 60, "a whole number"],
    ["maxSeconds", -0.1, "a finite number of seconds of at least 0, or leave it out for unlimited"],
    ["maxSeconds", Number.NaN, "a finite number of seconds"],
    ["maxSeconds", 0.0001, "0, which allows nothing, or at least 0.001 seconds"],
    ["maxCost", Number.POSITIVE_INFINITY, "a finite number of dollars"],
    ["maxCost", 1e300, "a finite number of dollars"],
    ["maxCost", 1e-9, "0, which allows nothing, or at least 0.000001 dollars"],
    ["maxCost", -0, "a finite number of dollars"],
    ["maxCost", "$1", "a finite number of dollars"],
    ["deadline", "tomorrow", "a Date, an ISO date text, or whole milliseconds since the epoch"],
    ["deadline", new Date(Number.NaN), "a Date"],
    ["deadline", Number.NaN, "a Date"],
    ["deadline", -1, "a Date"],
    ["deadline", null, "a Date"],
    ["deadline", 1_893_456_000, "if 2030-01-01T00:00:00.000Z is meant, multiply it by 1,000"],
    ["deadline", new Date(1_893_456_000), "if 2030-01-01T00:00:00.000Z is meant, multiply it by 1,000"],
    ["strict", 1, "true or false, or leave it out"],
    ["finalAnswer", "yes", "true or false, or leave it out"],
  ])("refuses %s: %o, and says which field, what it was and what is right", (field, value, right) => {
    const refused = () => limitsOf({ [field]: value });
    expect(refused).toThrow(InvalidInputError);
    expect(refused).toThrow(new RegExp(`^budget\\.${field} is .*; it takes .*`));
    expect(refused).toThrow(right);
  });

  test.each([
    [-0, "-0"],
    [10n, "the bigint 10n"],
    ["10", 'the text "10"'],
    [{}, "an object"],
  ])("shows %o in a way that tells it from a number that would do", (value, shown) => {
    expect(() => limitsOf({ maxSteps: value } as Budget)).toThrow(`budget.maxSteps is ${shown};`);
  });

  test("refuses a deadline that has passed where it holds from now on, and takes one that has not", () => {
    const now = Date.UTC(2030, 0, 1);
    for (const deadline of [now, now - 1, new Date(now - 5), "2029-12-31"]) {
      expect(() => limitsOf({ deadline }, now)).toThrow("a time in the future: it is 2030-01-01T00:00:00.000Z now");
      expect(limitsOf({ deadline })).toHaveProperty("deadlineAt");
    }
    expect(limitsOf({ deadline: now + 1 }, now)).toEqual({ deadlineAt: now + 1 });
  });

  test.each([
    ["maxToken", "maxTokens"],
    ["max_tokens", "maxTokens"],
    ["tokens", "maxTokens"],
    ["maxStep", "maxSteps"],
    ["MaxCost", "maxCost"],
    ["maxSecond", "maxSeconds"],
    ["deadLine", "deadline"],
    ["maxToolCall", "maxToolCalls"],
    ["treeSteps", "maxTreeSteps"],
    ["final_answer", "finalAnswer"],
  ])("refuses %s, and asks whether %s was meant", (field, meant) => {
    expect(() => limitsOf({ [field]: 3 })).toThrow(`budget.${field} is not a limit: did you mean ${meant}?`);
  });

  test("refuses a name that is like no limit, and names those that there are", () => {
    expect(() => limitsOf({ currency: 3 } as Budget)).toThrow(
      /^budget.currency is not a limit\. The limits are maxSteps, .*maxCost, deadline/,
    );
  });

  test.each([null, 5, "maxSteps", [{ maxSteps: 3 }], () => 3])("refuses %o, which is not a budget", (budget) => {
    expect(() => limitsOf(budget as Budget)).toThrow(/^budget is .*; it takes limits, for instance/);
  });
});

describe("how limits are held", () => {
  test("is stored beside them, and does not limit anything by itself", () => {
    expect(limitsOf({ strict: true, finalAnswer: false })).toEqual({ strict: true, finalAnswer: false });
    expect(isEmpty(limitsOf({ strict: true, finalAnswer: true }))).toBe(true);
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

  test("what remains is told for each limit that is set, and never falls below 0", () => {
    const limits = limitsOf({ maxSteps: 3, maxTokens: 10, maxCost: 0.5, maxSeconds: 2, deadline: 5_000, strict: true });
    const used = { ...noAmounts, steps: 1, tokens: 12, costMicros: 100_000, activeMs: 500, toolCalls: 7 };
    const left = { maxSteps: 2, maxTokens: 0, maxCostMicros: 400_000, maxActiveMs: 1_500, deadlineAt: 1_000 };
    expect(remaining(limits, used, 4_000)).toEqual(left);
    expect(remaining(limits, used, 6_000)).toEqual({ ...left, deadlineAt: 0 });
    expect(remaining(unlimited(), used, 0)).toEqual({});
  });

  test("a limit is reached exactly when nothing remains of it", () => {
    const amounts = Object.fromEntries(Object.keys(noAmounts).map((key) => [key, 5])) as typeof noAmounts;
    for (const name of limitNameSchema.options) {
      for (const max of [0, 4, 5, 6]) {
        const limits = { [name]: max };
        expect(isExhausted(limits, amounts, 5)).toBe(remaining(limits, amounts, 5)[name] === 0);
      }
    }
  });

  test("what binds on a chain is what binds on any account of it, at the smallest limit of each kind", () => {
    const top = bindingOf(limitsOf({ maxTokens: 5 }));
    expect(top).toEqual({ maxTokens: 5, strict: false });
    const both = bindingOf(limitsOf({ maxCost: 1, strict: true }), top);
    expect(both).toEqual({ maxTokens: 5, maxCostMicros: 1_000_000, strict: true });
    expect(bindingOf(limitsOf({ maxTokens: 4, maxCost: 2 }), both)).toEqual({ ...both, maxTokens: 4 });
    expect(bindingOf(limitsOf({ maxTokens: 6 }), top)).toEqual(top);
    expect(bindingOf(limitsOf({ maxSteps: 1, maxSeconds: 1 }))).toEqual(nothingBinds);
  });
});
