import { describe, expect, test } from "vitest";
import {
  type Account,
  activeUntil,
  countActivity,
  countToolCall,
  newWarnings,
  noModelUse,
  settle,
  usedAt,
} from "../../src/budget/index.ts";
import { InvariantError } from "../../src/errors/index.ts";
import { account, momentAt } from "./budget-fixtures.ts";

const reservation = { accountId: "a", tokens: 500, costMicros: 90, outputTokens: 400, model: "m" };
const reserved = { ...account(), reserved: { tokens: 700, costMicros: 100 } };

describe("a settlement", () => {
  test("releases the reservation and adds the use on the whole chain", () => {
    const chain = settle([reserved, reserved], {
      reservation,
      tokens: 120,
      costMicros: 30,
      usage: null,
      unconfirmed: false,
    });
    for (const settled of chain) {
      expect(settled).toMatchObject({
        reserved: { tokens: 200, costMicros: 10 },
        used: { tokens: 120, costMicros: 30 },
        unconfirmed: { tokens: 0, costMicros: 0 },
      });
    }
  });

  test.each([
    ["tokens", -1],
    ["tokens", Number.NaN],
    ["tokens", 0.5],
    ["costMicros", -1],
    ["costMicros", 2 ** 60],
  ])("of %s that are %s is refused: nothing is refunded", (field, amount) => {
    const settlement = { reservation, tokens: 1, costMicros: 1, usage: null, unconfirmed: false, [field]: amount };
    expect(() => settle([reserved], settlement)).toThrow(InvariantError);
    const usage = { inputTokens: amount, outputTokens: 1 };
    expect(() => settle([reserved], { ...settlement, [field]: 1, usage })).toThrow(InvariantError);
  });

  test("never exceeds the largest safe integer", () => {
    const full = { ...reserved, used: { ...reserved.used, costMicros: Number.MAX_SAFE_INTEGER - 1 } };
    const [settled] = settle([full], { reservation, tokens: 1, costMicros: 9, usage: null, unconfirmed: false });
    expect(settled?.used.costMicros).toBe(Number.MAX_SAFE_INTEGER);
  });

  test("of an unknown amount is counted in full and as unconfirmed", () => {
    const [settled] = settle([reserved], { reservation, tokens: 500, costMicros: 90, usage: null, unconfirmed: true });
    expect(settled).toMatchObject({ used: { tokens: 500 }, unconfirmed: { tokens: 500, costMicros: 90 } });
  });

  test("above the reservation is counted in full", () => {
    const [settled] = settle([reserved], {
      reservation,
      tokens: 9000,
      costMicros: 900,
      usage: null,
      unconfirmed: false,
    });
    expect(settled).toMatchObject({ used: { tokens: 9000, costMicros: 900 }, reserved: { tokens: 200 } });
  });
});

describe("use by model", () => {
  const usage = { inputTokens: 100, outputTokens: 20, cachedInputTokens: 40, cacheWriteTokens: 30, reasoningTokens: 5 };

  test("is stored by name on every account of the chain: calls, tokens of each kind, cost", () => {
    const ofAnother = { ...reservation, model: "other" };
    const first = settle([reserved, reserved], { reservation, tokens: 120, costMicros: 30, usage, unconfirmed: false });
    const estimated = { inputTokens: 7, outputTokens: 3, estimated: true };
    const second = settle(first, { reservation, tokens: 10, costMicros: 1, usage: estimated, unconfirmed: false });
    const third = settle(second, { reservation: ofAnother, tokens: 120, costMicros: 0, usage, unconfirmed: false });
    for (const { models } of third) {
      expect(models).toEqual({
        m: { ...noModelUse, ...usage, calls: 2, inputTokens: 107, outputTokens: 23, costMicros: 31, estimatedCalls: 1 },
        other: { ...noModelUse, ...usage, calls: 1 },
      });
    }
  });

  test("counts a call with an unknown result as reserved, and a refused one not at all", () => {
    const [lost] = settle([reserved], { reservation, tokens: 500, costMicros: 90, usage: null, unconfirmed: true });
    const counted = { calls: 1, inputTokens: 100, outputTokens: 400, costMicros: 90, unconfirmedCalls: 1 };
    expect(lost?.models).toEqual({ m: { ...noModelUse, ...counted } });
    const [none] = settle([reserved], { reservation, tokens: 0, costMicros: 0, usage: null, unconfirmed: false });
    expect(none?.models).toEqual({});
  });

  test("is stored for a name that every object has, too", () => {
    const odd = { ...reservation, model: "constructor" };
    const [settled] = settle([reserved], { reservation: odd, tokens: 120, costMicros: 0, usage, unconfirmed: false });
    expect(settled?.models).toEqual({ constructor: { ...noModelUse, ...usage, calls: 1 } });
  });
});

describe("a tool call", () => {
  test("counts for its own agent and for every tree above", () => {
    const outcome = countToolCall([account(), account({}, { id: "root", agentId: "boss" })], "agent", momentAt(0));
    expect(outcome).toMatchObject({
      granted: true,
      accounts: [{ used: { toolCalls: 1, treeToolCalls: 1 } }, { used: { toolCalls: 0, treeToolCalls: 1 } }],
    });
  });

  test("over a limit is refused with the account and the limit", () => {
    const boss = account({ maxTreeToolCalls: 0 }, { id: "root", agentId: "boss" });
    const refused = { granted: false, needed: 1, accountId: "root", limit: "maxTreeToolCalls", used: 0, max: 0 };
    expect(countToolCall([account(), boss], "agent", momentAt(0))).toEqual(refused);
    expect(countToolCall([account({ maxToolCalls: 0 })], "agent", momentAt(0))).toMatchObject({
      limit: "maxToolCalls",
    });
    expect(countToolCall([account({ maxToolCalls: 0 })], "another", momentAt(0))).toMatchObject({ granted: true });
  });
});

describe("active time", () => {
  test("runs from the first worker's start to the last one's end", () => {
    let shared = account({ maxSeconds: 10 });
    const workers = new Map<string, Account>();
    for (const [worker, isActive, at] of [
      ["one", true, 100],
      ["two", true, 150],
      ["one", false, 200],
      ["two", false, 400],
    ] as const) {
      const own = workers.get(worker) ?? account();
      const [changed, above] = countActivity([own, shared], isActive, at);
      if (!changed || !above) throw new Error("expected both accounts to change");
      workers.set(worker, changed);
      shared = above;
    }
    expect(shared).toMatchObject({ used: { activeMs: 300 }, activeCount: 0, activeSince: null });
    expect(workers.get("one")).toMatchObject({ used: { activeMs: 100 }, activeCount: 0, isActive: false });
  });

  test("has an end while work continues, and none otherwise", () => {
    const [working] = countActivity(
      [{ ...account({ maxSeconds: 1 }), used: { ...account().used, activeMs: 400 } }],
      true,
      100,
    );
    if (!working) throw new Error("expected one changed account");
    expect(activeUntil(working)).toBe(700);
    expect(usedAt(working, 350).activeMs).toBe(650);
    expect(activeUntil(account({ maxSeconds: 1 }))).toBeUndefined();
    expect(activeUntil({ ...working, limits: {} })).toBeUndefined();
  });

  test("is counted once per holder, even if reported twice", () => {
    const [working] = countActivity([account()], true, 100);
    if (!working) throw new Error("expected one changed account");
    expect(working).toMatchObject({ isActive: true, activeCount: 1, activeSince: 100 });
    expect(countActivity([working, account()], true, 200)).toEqual([]);
    expect(countActivity([account()], false, 200)).toEqual([]);
  });

  test("of agents below does not mark the account's own holder as working", () => {
    const [, above] = countActivity([account(), account()], true, 100);
    expect(above).toMatchObject({ isActive: false, activeCount: 1 });
  });

  test("never goes backwards with the clock", () => {
    const chain = countActivity(countActivity([account()], true, 100), false, 50);
    expect(chain).toMatchObject([{ used: { activeMs: 0 }, activeCount: 0 }]);
  });
});

function at(tokens: number): Account {
  return { ...account({ maxTokens: 1000 }), used: { ...account().used, tokens } };
}

describe("a warning", () => {
  test("is given once, at 80 %", () => {
    expect(newWarnings(at(799), momentAt(0)).warnings).toEqual([]);
    const { account: warned, warnings } = newWarnings(at(800), momentAt(0));
    expect(warnings).toEqual([{ accountId: "a", limit: "maxTokens", used: 800, max: 1000 }]);
    expect(newWarnings({ ...warned, used: { ...warned.used, tokens: 990 } }, momentAt(0)).warnings).toEqual([]);
  });

  test("is given for tool calls of the agent and of its tree", () => {
    const used = { ...account().used, toolCalls: 4, treeToolCalls: 8 };
    const busy = { ...account({ maxToolCalls: 5, maxTreeToolCalls: 10 }), used };
    expect(newWarnings(busy, momentAt(0)).warnings).toEqual([
      { accountId: "a", limit: "maxToolCalls", used: 4, max: 5 },
      { accountId: "a", limit: "maxTreeToolCalls", used: 8, max: 10 },
    ]);
  });

  test("is given for working time during the work", () => {
    const working = { ...account({ maxSeconds: 10 }), activeCount: 1, activeSince: 1000 };
    expect(newWarnings(working, momentAt(8999)).warnings).toEqual([]);
    expect(newWarnings(working, momentAt(9000)).warnings).toMatchObject([
      { limit: "maxActiveMs", used: 8000, max: 10_000 },
    ]);
  });

  test("is not given for a limit of 0", () => {
    expect(newWarnings(account({ maxTokens: 0, maxSteps: 0 }), momentAt(0)).warnings).toEqual([]);
  });
});
