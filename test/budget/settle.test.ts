import { describe, expect, test } from "vitest";
import {
  type Account,
  activeUntil,
  countActivity,
  countToolCall,
  newWarnings,
  settle,
  usedAt,
} from "../../src/budget/index.ts";
import { account } from "./budget-fixtures.ts";

const reservation = { accountId: "a", tokens: 500, costMicros: 90, outputTokens: 400 };
const reserved = { ...account(), reserved: { tokens: 700, costMicros: 100 } };

describe("a settlement", () => {
  test("gives the reservation back and counts what was used, on the whole chain", () => {
    const chain = settle([reserved, reserved], { reservation, tokens: 120, costMicros: 30, unconfirmed: false });
    for (const settled of chain) {
      expect(settled).toMatchObject({
        reserved: { tokens: 200, costMicros: 10 },
        used: { tokens: 120, costMicros: 30 },
        unconfirmed: { tokens: 0, costMicros: 0 },
      });
    }
  });

  test("of an unknown amount is used in full and remembered as unconfirmed", () => {
    const [settled] = settle([reserved], { reservation, tokens: 500, costMicros: 90, unconfirmed: true });
    expect(settled).toMatchObject({ used: { tokens: 500 }, unconfirmed: { tokens: 500, costMicros: 90 } });
  });

  test("of more than was reserved is counted as it is", () => {
    const [settled] = settle([reserved], { reservation, tokens: 9000, costMicros: 900, unconfirmed: false });
    expect(settled).toMatchObject({ used: { tokens: 9000, costMicros: 900 }, reserved: { tokens: 200 } });
  });
});

describe("a tool call", () => {
  test("counts for its own agent and in every tree above", () => {
    const outcome = countToolCall([account(), account({}, { id: "root", agentId: "boss" })], "agent");
    expect(outcome).toMatchObject({
      granted: true,
      accounts: [{ used: { toolCalls: 1, treeToolCalls: 1 } }, { used: { toolCalls: 0, treeToolCalls: 1 } }],
    });
  });

  test("over a limit is refused, and the account that forbids it is named", () => {
    const boss = account({ maxTreeToolCalls: 0 }, { id: "root", agentId: "boss" });
    const refused = { granted: false, accountId: "root", limit: "maxTreeToolCalls" };
    expect(countToolCall([account(), boss], "agent")).toEqual(refused);
    expect(countToolCall([account({ maxToolCalls: 0 })], "agent")).toMatchObject({ limit: "maxToolCalls" });
    expect(countToolCall([account({ maxToolCalls: 0 })], "another")).toMatchObject({ granted: true });
  });
});

describe("active time", () => {
  test("runs from the first worker to the last, however many there are between", () => {
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
      if (!changed || !above) throw new Error("both accounts change");
      workers.set(worker, changed);
      shared = above;
    }
    expect(shared).toMatchObject({ used: { activeMs: 300 }, activeCount: 0, activeSince: null });
    expect(workers.get("one")).toMatchObject({ used: { activeMs: 100 }, activeCount: 0, isActive: false });
  });

  test("tells when it runs out while work goes on, and nothing while it does not", () => {
    const [working] = countActivity(
      [{ ...account({ maxSeconds: 1 }), used: { ...account().used, activeMs: 400 } }],
      true,
      100,
    );
    if (!working) throw new Error("one account was given");
    expect(activeUntil(working)).toBe(700);
    expect(usedAt(working, 350).activeMs).toBe(650);
    expect(activeUntil(account({ maxSeconds: 1 }))).toBeUndefined();
    expect(activeUntil({ ...working, limits: {} })).toBeUndefined();
  });

  test("is counted once for each holder, however often it is told", () => {
    const [working] = countActivity([account()], true, 100);
    if (!working) throw new Error("one account was given");
    expect(working).toMatchObject({ isActive: true, activeCount: 1, activeSince: 100 });
    expect(countActivity([working, account()], true, 200)).toEqual([]);
    expect(countActivity([account()], false, 200)).toEqual([]);
  });

  test("of those below does not make the account's own holder one that works", () => {
    const [, above] = countActivity([account(), account()], true, 100);
    expect(above).toMatchObject({ isActive: false, activeCount: 1 });
  });

  test("never goes back when the clock does", () => {
    const chain = countActivity(countActivity([account()], true, 100), false, 50);
    expect(chain).toMatchObject([{ used: { activeMs: 0 }, activeCount: 0 }]);
  });
});

function at(tokens: number): Account {
  return { ...account({ maxTokens: 1000 }), used: { ...account().used, tokens } };
}

describe("a warning", () => {
  test("is given at 80 %, and remembered", () => {
    expect(newWarnings(at(799)).warnings).toEqual([]);
    const { account: warned, warnings } = newWarnings(at(800));
    expect(warnings).toEqual([{ accountId: "a", limit: "maxTokens", used: 800, max: 1000 }]);
    expect(newWarnings({ ...warned, used: { ...warned.used, tokens: 990 } }).warnings).toEqual([]);
  });

  test("is not given for a limit of 0, where there is nothing to use", () => {
    expect(newWarnings(account({ maxTokens: 0, maxSteps: 0 })).warnings).toEqual([]);
  });
});
