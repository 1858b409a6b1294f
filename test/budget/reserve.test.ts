import { describe, expect, test } from "vitest";
import { type Budget, costBound, outputWithin, type ReservationAsk, reserve, settle } from "../../src/budget/index.ts";
import { account, ask, momentAt } from "./budget-fixtures.ts";

const price = { inputPerMillion: 2, outputPerMillion: 10 };

describe("a reservation", () => {
  test("is the prompt and the output bound, on every account, and opens a step", () => {
    const chain = [account({}, { id: "turn" }), account({}, { id: "root", agentId: "boss" })];
    const outcome = reserve(chain, ask({ price }), momentAt(0));
    expect(outcome).toMatchObject({
      granted: true,
      reservation: { tokens: 500, costMicros: 4200, outputTokens: 400 },
      accounts: [
        { id: "turn", reserved: { tokens: 500, costMicros: 4200 }, used: { steps: 1, treeSteps: 1 } },
        { id: "root", reserved: { tokens: 500, costMicros: 4200 }, used: { steps: 0, treeSteps: 1 } },
      ],
    });
  });

  test("that opens no step is granted where the steps are used up", () => {
    const used = account({ maxSteps: 0, maxTreeSteps: 0 });
    expect(reserve([used], ask({ opensStep: false }), momentAt(0))).toMatchObject({ granted: true });
    expect(reserve([used], ask(), momentAt(0))).toMatchObject({ granted: false, reason: "budget", limit: "maxSteps" });
  });

  test("is bound by its own agent's steps alone, and by the tree's steps of all above", () => {
    const boss = account({ maxSteps: 0 }, { id: "root", agentId: "boss" });
    expect(reserve([account(), boss], ask(), momentAt(0))).toMatchObject({ granted: true });
    const strict = account({ maxTreeSteps: 0 }, { id: "root", agentId: "boss" });
    expect(reserve([account(), strict], ask(), momentAt(0))).toMatchObject({ granted: false, accountId: "root" });
  });

  test("is clamped to what the limit leaves, down to the minimum and no further", () => {
    expect(reserve([account({ maxTokens: 400 })], ask(), momentAt(0))).toMatchObject({
      reservation: { outputTokens: 300 },
    });
    expect(reserve([account({ maxTokens: 356 })], ask(), momentAt(0))).toMatchObject({
      reservation: { outputTokens: 256 },
    });
    expect(reserve([account({ maxTokens: 355 })], ask(), momentAt(0))).toMatchObject({
      granted: false,
      reason: "budget",
      accountId: "a",
      limit: "maxTokens",
      used: 0,
      max: 355,
      needed: 356,
    });
  });

  test("is clamped by cost as well, and the cost is never over the limit", () => {
    const outcome = reserve([account({ maxCost: 0.0035 })], ask({ price }), momentAt(0));
    expect(outcome).toMatchObject({ reservation: { outputTokens: 330, costMicros: 3500 } });
    expect(reserve([account({ maxCost: 0.0027 })], ask({ price }), momentAt(0))).toMatchObject({
      limit: "maxCostMicros",
    });
  });

  test("must wait where others' reservations alone stand in the way, rather than be clamped", () => {
    const first = reserve([account({ maxTokens: 900 })], ask(), momentAt(0));
    if (!first.granted) throw new Error("there is room for one");
    const second = reserve(first.accounts, ask(), momentAt(0));
    expect(second).toMatchObject({
      granted: false,
      reason: "mustWait",
      accountId: "a",
      limit: "maxTokens",
      used: 0,
      max: 900,
    });
    const settlement = { reservation: first.reservation, tokens: 100, costMicros: 0, usage: null, unconfirmed: false };
    expect(reserve(settle(first.accounts, settlement), ask(), momentAt(0))).toMatchObject({
      reservation: { outputTokens: 400 },
    });
  });

  test("does not wait for room above that its own turn's limit would not let it use", () => {
    const busy = reserve([account({ maxTokens: 1000 }, { id: "root" })], ask(), momentAt(0));
    if (!busy.granted) throw new Error("there is room for one");
    const turn = account({ maxTokens: 400 }, { id: "turn" });
    expect(reserve([turn, ...busy.accounts], ask(), momentAt(0))).toMatchObject({
      granted: true,
      reservation: { outputTokens: 300 },
    });
  });

  test("is refused for good, not told to wait, where the rest of one account is too small anyway", () => {
    const busy = reserve([account({ maxTokens: 900 }, { id: "root" })], ask(), momentAt(0));
    if (!busy.granted) throw new Error("there is room for one");
    const outcome = reserve([...busy.accounts, account({ maxTokens: 300 }, { id: "top" })], ask(), momentAt(0));
    expect(outcome).toMatchObject({ reason: "budget", accountId: "top" });
  });

  test("is refused as unpriced where a limit on cost binds and the price is unknown", () => {
    const chain = [account({}, { id: "turn" }), account({ maxCost: 1 }, { id: "root" })];
    expect(reserve(chain, ask({ price: null }), momentAt(0))).toMatchObject({ reason: "unpriced", accountId: "root" });
  });

  test("says whether a limit stands behind it, so that the provider is told the bound", () => {
    expect(reserve([account({ maxSteps: 3 })], ask(), momentAt(0))).toMatchObject({ reservation: { isBound: false } });
    const boss = account({ maxTokens: 9000 }, { id: "boss" });
    expect(reserve([account(), boss], ask(), momentAt(0))).toMatchObject({ reservation: { isBound: true } });
  });

  test("is refused when time is up, also when it runs out while work goes on", () => {
    const working = { ...account({ maxSeconds: 1 }), activeCount: 1, activeSince: 1000 };
    expect(reserve([working], ask(), momentAt(1999))).toMatchObject({ granted: true });
    expect(reserve([working], ask(), momentAt(2000))).toMatchObject({ granted: false, limit: "maxActiveMs" });
    expect(reserve([account({ deadline: 50 })], ask(), momentAt(50))).toMatchObject({
      granted: false,
      limit: "deadlineAt",
    });
  });
});

function isLast(budget: Budget, changes: Partial<ReservationAsk> = {}, chain = [account(budget)]): boolean {
  const outcome = reserve(chain, ask({ finalAnswer: true, ...changes }), momentAt(0));
  if (!outcome.granted) throw new Error("it has to be granted");
  return outcome.reservation.isLast === true;
}

describe("a reservation that is asked to tell whether it is the last", () => {
  test("is the last of its agent's steps, and of its tree's", () => {
    expect(isLast({ maxSteps: 2 })).toBe(false);
    expect(isLast({ maxSteps: 1 })).toBe(true);
    const boss = account({ maxSteps: 1 }, { id: "root", agentId: "boss" });
    expect(isLast({}, {}, [account(), boss])).toBe(false);
    const strict = account({ maxTreeSteps: 1 }, { id: "root", agentId: "boss" });
    expect(isLast({}, {}, [account(), strict])).toBe(true);
  });

  test("is the last as well where it is another attempt of the last step", () => {
    const used = { ...account().used, steps: 1, treeSteps: 1 };
    expect(isLast({}, { opensStep: false }, [{ ...account({ maxSteps: 1 }), used }])).toBe(true);
  });

  test("is the last where its worst case leaves too little for the same prompt with the least output", () => {
    // 500 now, at most; 100 and 256 then.
    expect(isLast({ maxTokens: 856 })).toBe(false);
    expect(isLast({ maxTokens: 855 })).toBe(true);
    // 4,200 micro-dollars now, 2,760 then.
    expect(isLast({ maxCost: 0.00696 }, { price })).toBe(false);
    expect(isLast({ maxCost: 0.006959 }, { price })).toBe(true);
  });

  test("is not made the last by what others have reserved, which the next call would wait for", () => {
    const busy = { ...account({ maxTokens: 1400 }), reserved: { tokens: 900, costMicros: 0 } };
    expect(isLast({}, {}, [busy])).toBe(false);
  });

  test("does not tell where it was not asked", () => {
    expect(isLast({ maxSteps: 1 }, { finalAnswer: false })).toBe(false);
  });
});

describe("an output bound by money", () => {
  test("is as large as the money allows, for prices that no binary fraction holds", () => {
    const cheap = { inputPerMillion: 0.15, outputPerMillion: 0.6 };
    for (let micros = 16; micros < 3000; micros += 1) {
      const output = outputWithin(cheap, 100, micros);
      expect(costBound(cheap, 100, output)).toBeLessThanOrEqual(micros);
      expect(costBound(cheap, 100, output + 2)).toBeGreaterThan(micros);
    }
  });

  test("is none where the prompt alone is too dear, and without end where output is free", () => {
    expect(outputWithin(price, 100, 199)).toBe(-1);
    expect(outputWithin(price, 100, 200)).toBe(0);
    expect(outputWithin({ ...price, outputPerMillion: 0 }, 100, 200)).toBe(Number.MAX_SAFE_INTEGER);
  });
});
