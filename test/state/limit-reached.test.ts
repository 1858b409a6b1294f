import { describe, expect, test } from "vitest";
import { accountText, type AccountHolder, limitText, signalOfLimit, warningText } from "../../src/state/index.ts";

const lead: AccountHolder = { name: "lead", kinship: "own" };
const turn = "turn:desk#1";
const deadline = Date.UTC(2026, 10, 21, 14, 3);

describe("the text of a reached limit", () => {
  test.each([
    ["maxSteps", { used: 10, max: 10 }, "lead, this turn: 10 of 10 steps"],
    ["maxTreeSteps", { used: 9, max: 9 }, "lead, this turn: 9 of 9 steps of its tree"],
    ["maxToolCalls", { used: 2, max: 2 }, "lead, this turn: 2 of 2 tool calls"],
    ["maxTreeToolCalls", { used: 3, max: 3 }, "lead, this turn: 3 of 3 tool calls of its tree"],
    ["maxTokens", { used: 50_000, max: 50_000 }, "lead, this turn: 50,000 of 50,000 tokens"],
    [
      "maxTokens",
      { used: 48_123, max: 50_000 },
      "lead, this turn: 48,123 of 50,000 tokens, too few left for the next call",
    ],
    ["maxTokens", { used: 1_234_567, max: 1_000_000 }, "lead, this turn: 1,234,567 of 1,000,000 tokens"],
    ["maxCostMicros", { used: 500_000, max: 500_000 }, "lead, this turn: $0.50 of $0.50"],
    [
      "maxCostMicros",
      { used: 4_499, max: 4_500 },
      "lead, this turn: $0.004499 of $0.0045, too little left for the next call",
    ],
    ["maxCostMicros", { used: 1_200_000_001, max: 1_200_000_000 }, "lead, this turn: $1,200.000001 of $1,200.00"],
    ["maxActiveMs", { used: 60_012, max: 60_000 }, "lead, this turn: 60 of 60 seconds"],
    ["maxActiveMs", { used: 1_500, max: 1_500 }, "lead, this turn: 1.5 of 1.5 seconds"],
    ["maxActiveMs", { used: 50, max: 50 }, "lead, this turn: 0.050 of 0.050 seconds"],
    ["deadlineAt", { used: deadline + 9, max: deadline }, "lead, this turn: its deadline 2026-11-21 14:03:00 UTC"],
  ] as const)("%s has its unit: %j", (limit, figures, text) => {
    expect(limitText(limit, turn, { ...figures, holder: lead })).toBe(text);
  });

  test("has no figures if they are unknown", () => {
    expect(limitText("maxTokens", turn, { holder: lead })).toBe("lead, this turn: its limit of tokens");
    expect(limitText("deadlineAt", turn)).toBe("desk, this turn: its deadline");
  });

  test("names the account's owner and scope", () => {
    expect(accountText("agent:desk", lead)).toBe("lead, its whole life");
    expect(accountText("background:desk#1", lead)).toBe("lead, its background children");
    expect(accountText(turn, { name: "lead", kinship: "parent" })).toBe("its parent lead, this turn");
    expect(accountText("agent:desk~a1", { name: "lead", kinship: "ancestor" })).toBe(
      "its ancestor lead, its whole life",
    );
    expect(accountText("turn:desk~a1#3")).toBe("desk~a1, this turn");
  });

  test("is part of a signal with the same data", () => {
    expect(signalOfLimit("maxTokens", turn, { used: 7, max: 7, holder: lead })).toEqual({
      reason: "token_limit",
      message: "lead, this turn: 7 of 7 tokens",
      source: "budget",
      accountId: turn,
      limit: "maxTokens",
      used: 7,
      max: 7,
    });
  });
});

test("a warning contains the use and the share", () => {
  expect(warningText({ limit: "maxCostMicros", accountId: turn, holder: lead, used: 405_000, max: 500_000 })).toBe(
    "lead, this turn: $0.405 of $0.50 (81 %)",
  );
  const left = { limit: "deadlineAt", accountId: turn, holder: lead, used: deadline - 90_500, max: deadline } as const;
  expect(warningText(left)).toBe("lead, this turn: its deadline 2026-11-21 14:03:00 UTC is 90.5 seconds away");
});
