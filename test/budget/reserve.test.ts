import { describe, expect, test } from "vitest";
import { type Budget, costBound, outputWithin, type ReservationAsk, reserve, settle } from "../../src/budget/index.ts";
import { account, ask, momentAt } from "./budget-fixtures.ts";

const price = { inputPerMillion: 2, outputPerMillion: 10 };

describe("a reservation", () => {
  test("covers prompt and output bound on every account, and opens a step", () => {
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

  test("that opens no step is granted even if the steps are used up", () => {
    const used = account({ maxSteps: 0, maxTreeSteps: 0 });
    expect(reserve([used], ask({ opensStep: false }), momentAt(0))).toMatchObject({ granted: true });
    expect(reserve([used], ask(), momentAt(0))).toMatchObject({ granted: false, reason: "budget", limit: "maxSteps" });
  });

  test("is limited by the agent's own steps, and by the tree steps of all accounts above", () => {
    const boss = account({ maxSteps: 0 }, { id: "root", agentId: "boss" });
    expect(reserve([account(), boss], ask(), momentAt(0))).toMatchObject({ granted: true });
    const strict = account({ maxTreeSteps: 0 }, { id: "root", agentId: "boss" });
    expect(reserve([account(), strict], ask(), momentAt(0))).toMatchObject({ granted: false, accountId: "root" });
  });

  test("is clamped to what the limit leaves, down to the minimum", () => {
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

  test("is clamped by cost as well, and its cost never exceeds the limit", () => {
    const outcome = reserve([account({ maxCost: 0.0035 })], ask({ price }), momentAt(0));
    expect(outcome).toMatchObject({ reservation: { outputTokens: 330, costMicros: 3500 } });
    expect(reserve([account({ maxCost: 0.0027 })], ask({ price }), momentAt(0))).toMatchObject({
      limit: "maxCostMicros",
    });
  });

  test("reserves the rate of the longer cache lifetime only for calls that may write at it", () => {
    const rates = { ...price, cacheWritePerMillion: 2.5, longCacheWritePerMillion: 4 };
    const costOf = (more: Partial<ReservationAsk>) => {
      const outcome = reserve([account({ maxCost: 1 })], ask({ price: rates, ...more }), momentAt(0));
      return outcome.granted ? outcome.reservation.costMicros : undefined;
    };
    expect(costOf({})).toBe(100 * 2.5 + 4_000);
    expect(costOf({ writesLongCache: true })).toBe(100 * 4 + 4_000);
    const tight = reserve([account({ maxCost: 0.0035 })], ask({ price: rates, writesLongCache: true }), momentAt(0));
    expect(tight).toMatchObject({ reservation: { outputTokens: 310, costMicros: 3_500 } });
  });

  test("waits if only others' reservations are in its way, rather than being clamped", () => {
    const first = reserve([account({ maxTokens: 900 })], ask(), momentAt(0));
    if (!first.granted) throw new Error("expected the first reservation to be granted");
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
    if (!busy.granted) throw new Error("expected the first reservation to be granted");
    const turn = account({ maxTokens: 400 }, { id: "turn" });
    expect(reserve([turn, ...busy.accounts], ask(), momentAt(0))).toMatchObject({
      granted: true,
      reservation: { outputTokens: 300 },
    });
  });

  test("is refused, not told to wait, if the rest of one account is too small anyway", () => {
    const busy = reserve([account({ maxTokens: 900 }, { id: "root" })], ask(), momentAt(0));
    if (!busy.granted) throw new Error("expected the first reservation to be granted");
    const outcome = reserve([...busy.accounts, account({ maxTokens: 300 }, { id: "top" })], ask(), momentAt(0));
    expect(outcome).toMatchObject({ reason: "budget", accountId: "top" });
  });

  test("is refused as unpriced if a cost limit applies and the price is unknown", () => {
    const chain = [account({}, { id: "turn" }), account({ maxCost: 1 }, { id: "root" })];
    expect(reserve(chain, ask({ price: null }), momentAt(0))).toMatchObject({ reason: "unpriced", accountId: "root" });
  });

  test("reports whether a limit applies, so that the bound is sent to the provider", () => {
    expect(reserve([account({ maxSteps: 3 })], ask(), momentAt(0))).toMatchObject({ reservation: { isBound: false } });
    const boss = account({ maxTokens: 9000 }, { id: "boss" });
    expect(reserve([account(), boss], ask(), momentAt(0))).toMatchObject({ reservation: { isBound: true } });
  });

  test("is refused when time is up, even if it runs out during work", () => {
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
  if (!outcome.granted) throw new Error("expected the reservation to be granted");
  return outcome.reservation.isLast === true;
}

describe("a reservation with finalAnswer", () => {
  test("is the last at the last step of its agent or of its tree", () => {
    expect(isLast({ maxSteps: 2 })).toBe(false);
    expect(isLast({ maxSteps: 1 })).toBe(true);
    const boss = account({ maxSteps: 1 }, { id: "root", agentId: "boss" });
    expect(isLast({}, {}, [account(), boss])).toBe(false);
    const strict = account({ maxTreeSteps: 1 }, { id: "root", agentId: "boss" });
    expect(isLast({}, {}, [account(), strict])).toBe(true);
  });

  test("is also the last as another attempt of the last step", () => {
    const used = { ...account().used, steps: 1, treeSteps: 1 };
    expect(isLast({}, { opensStep: false }, [{ ...account({ maxSteps: 1 }), used }])).toBe(true);
  });

  test("is the last if its worst case leaves too little for the same prompt with the least output", () => {
    // At most 500 for this call; 100 and 256 for the next.
    expect(isLast({ maxTokens: 856 })).toBe(false);
    expect(isLast({ maxTokens: 855 })).toBe(true);
    // 4,200 micro-dollars for this call, 2,760 for the next.
    expect(isLast({ maxCost: 0.00696 }, { price })).toBe(false);
    expect(isLast({ maxCost: 0.006959 }, { price })).toBe(true);
  });

  test("is not the last because of others' reservations, which the next call would wait for", () => {
    const busy = { ...account({ maxTokens: 1400 }), reserved: { tokens: 900, costMicros: 0 } };
    expect(isLast({}, {}, [busy])).toBe(false);
  });

  test("is not marked as the last without finalAnswer", () => {
    expect(isLast({ maxSteps: 1 }, { finalAnswer: false })).toBe(false);
  });
});

describe("an output bound from a cost limit", () => {
  test("is as large as the money allows, for prices without an exact binary fraction", () => {
    const cheap = { inputPerMillion: 0.15, outputPerMillion: 0.6 };
    for (let micros = 16; micros < 3000; micros += 1) {
      const output = outputWithin(cheap, 100, micros);
      expect(costBound(cheap, 100, output)).toBeLessThanOrEqual(micros);
      expect(costBound(cheap, 100, output + 2)).toBeGreaterThan(micros);
    }
  });

  test("is -1 if the prompt alone costs too much, and unlimited if output is free", () => {
    expect(outputWithin(price, 100, 199)).toBe(-1);
    expect(outputWithin(price, 100, 200)).toBe(0);
    expect(outputWithin({ ...price, outputPerMillion: 0 }, 100, 200)).toBe(Number.MAX_SAFE_INTEGER);
  });
});
