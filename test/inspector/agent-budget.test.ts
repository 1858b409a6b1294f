import { describe, expect, test } from "vitest";
import { forecastsOf, type Limits, openAccount, settle, withReservation } from "../../src/budget/index.ts";
import type { AccountAt } from "../../src/inspector/run-model/account-at.ts";
import { agentBudget, type BindingLimit, forecastOf } from "../../src/inspector/run-model/agent-budget.ts";

const openedAt = 1_000_000;

interface Use {
  readonly tokens?: number;
  readonly reserved?: number;
  readonly steps?: number;
  /** The start of its current work; `null` if it is idle. */
  readonly activeSince?: number | null;
  readonly activeMs?: number;
  readonly closedAt?: number | null;
}

function account(agentId: string, id: string, limits: Limits, use: Use = {}): AccountAt {
  const opened = openAccount({ id, agentId, turnId: null, parentId: null, limits }, openedAt);
  const call = { agentId, opensStep: true };
  let now = opened;
  for (let step = 0; step < (use.steps ?? 0); step += 1) now = withReservation(now, call, { tokens: 0, costMicros: 0 });
  const reservation = { accountId: id, tokens: 0, costMicros: 0, outputTokens: 1, model: "m" };
  const tokens = use.tokens ?? 0;
  const [used = now] = settle([now], { reservation, tokens, costMicros: 0, usage: null, unconfirmed: false });
  return {
    ...used,
    used: { ...used.used, activeMs: use.activeMs ?? 0 },
    reserved: { tokens: use.reserved ?? 0, costMicros: 0 },
    activeSince: use.activeSince ?? null,
    closedAt: use.closedAt ?? null,
  };
}

function named(use: BindingLimit | undefined): string | undefined {
  return use && `${use.limit} of ${use.account.id}`;
}

describe("the limits that apply to an agent", () => {
  test("are its own and those of its ancestors with their reservations; the fullest one binds", () => {
    const turn = account("reader", "turn", { maxSteps: 10, maxTokens: 1_000 }, { tokens: 100, steps: 2 });
    const lead = account("lead", "lead", { maxTokens: 2_000, maxSteps: 4 }, { tokens: 300, reserved: 700, steps: 4 });
    const { own, tree, binding } = agentBudget([turn, lead], "reader", openedAt);
    // The lead has no step left, which does not concern its reader.
    expect([named(own), named(tree), named(binding)]).toEqual([
      "maxSteps of turn",
      "maxTokens of lead",
      "maxTokens of lead",
    ]);
    expect(tree).toMatchObject({ used: 300, reserved: 700, max: 2_000 });
  });

  test("of an agent without ancestors are distinguished by the agent whose usage counts", () => {
    const turn = account("lead", "turn", { maxSteps: 4, maxTokens: 2_000 }, { tokens: 1_900, steps: 3 });
    const { own, tree, binding } = agentBudget([turn], "lead", openedAt);
    expect([named(own), named(tree), named(binding)]).toEqual([
      "maxSteps of turn",
      "maxTokens of turn",
      "maxTokens of turn",
    ]);
  });

  test("on time change with the clock, a deadline from the opening of its account", () => {
    const limits = { maxActiveMs: 10_000, deadlineAt: openedAt + 20_000 };
    const turn = account("lead", "turn", limits, { activeSince: openedAt });
    expect(agentBudget([turn], "lead", openedAt + 4_000).binding).toMatchObject({ limit: "maxActiveMs", used: 4_000 });
    const resting = account("lead", "turn", limits, { activeMs: 4_000 });
    const { binding } = agentBudget([resting], "lead", openedAt + 15_000);
    expect(binding).toMatchObject({ limit: "deadlineAt", used: 15_000, max: 20_000 });
    const closed = { ...resting, closedAt: openedAt + 2_000 };
    expect(agentBudget([closed], "lead", openedAt + 15_000).binding).toMatchObject({ limit: "maxActiveMs" });
  });

  test("are empty if no account has a limit", () => {
    const free = agentBudget([account("lead", "turn", {})], "lead", openedAt);
    expect(free).toEqual({ own: undefined, tree: undefined, binding: undefined });
  });
});

describe("a forecast", () => {
  const limits = { maxTokens: 1_000 };

  function forecast(use: Use, time: number, one: Limits = limits) {
    const holder = account("lead", "turn", one, use);
    const { binding } = agentBudget([holder], "lead", time);
    return binding && forecastOf(binding, time);
  }

  test("is that of `troupe forecast`", () => {
    // 250 tokens in 100 s: the other 750 take another 300 s.
    const time = openedAt + 100_000;
    const use = { tokens: 250, activeMs: 3_000, activeSince: time - 2_000 };
    expect(forecast(use, time)).toEqual({ at: time + 300_000, isEstimate: true });
    expect(forecastsOf(account("lead", "turn", limits, use), time)).toMatchObject([{ metAt: time + 300_000 }]);
  });

  test.each([
    ["nothing was used", { activeSince: openedAt }],
    ["no agent works", { tokens: 250, activeMs: 3_000 }],
    ["its account is closed", { tokens: 250, activeMs: 3_000, activeSince: openedAt, closedAt: openedAt + 1 }],
    ["the limit is reached", { tokens: 1_000, activeMs: 3_000, activeSince: openedAt }],
  ])("is missing if %s", (_why, use) => {
    expect(forecast(use, openedAt + 5_000)).toBeUndefined();
  });

  test("of a time limit is exact, not an estimate", () => {
    const time = openedAt + 4_000;
    const at = openedAt + 10_000;
    expect(forecast({ activeSince: openedAt }, time, { maxActiveMs: 10_000 })).toEqual({ at, isEstimate: false });
    expect(forecast({ activeMs: 4_000 }, time, { maxActiveMs: 10_000 })).toBeUndefined();
    expect(forecast({}, time, { deadlineAt: at })).toEqual({ at, isEstimate: false });
  });
});
