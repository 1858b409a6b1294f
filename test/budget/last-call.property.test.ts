import * as fc from "fast-check";
import { expect, test } from "vitest";
import { type Account, openAccount, type ReservationAsk, reserve, settle } from "../../src/budget/index.ts";
import { ask, momentAt } from "./budget-fixtures.ts";

const limits = fc.record(
  {
    maxTokens: fc.integer({ min: 300, max: 3000 }),
    maxCostMicros: fc.integer({ min: 0, max: 9000 }),
    maxSteps: fc.integer({ min: 1, max: 4 }),
    maxTreeSteps: fc.integer({ min: 1, max: 4 }),
  },
  { requiredKeys: [] },
);

/** A chain from the agent's own account upwards; `reserved` contains the reservations of others. */
const chain = fc
  .array(fc.record({ limits, used: fc.nat(500), reserved: fc.nat(500), steps: fc.nat(3) }), {
    minLength: 1,
    maxLength: 4,
  })
  .map((parts) =>
    parts.map(({ limits: own, used, reserved, steps }, index): Account => {
      const parentId = index + 1 < parts.length ? `a${index + 1}` : null;
      const agentId = index < 2 ? "agent" : "boss";
      const opened = openAccount({ id: `a${index}`, agentId, turnId: null, parentId, limits: own });
      const spent = { ...opened.used, tokens: used, costMicros: used, steps, treeSteps: steps };
      return { ...opened, used: spent, reserved: { tokens: reserved, costMicros: reserved } };
    }),
  );

const call: fc.Arbitrary<ReservationAsk> = fc
  .record({
    promptTokens: fc.nat(600),
    outputTokens: fc.integer({ min: 1, max: 900 }),
    price: fc.record({ inputPerMillion: fc.nat(3), outputPerMillion: fc.nat(6) }),
    opensStep: fc.boolean(),
  })
  .map((changes) =>
    ask({ ...changes, accountId: "a0", finalAnswer: true, minimumOutputTokens: Math.min(changes.outputTokens, 256) }),
  );

test("a reservation is marked as the last exactly if the same prompt with the least output would be refused after it", () => {
  let granted = 0;
  fc.assert(
    fc.property(chain, call, (accounts, first) => {
      const outcome = reserve(accounts, first, momentAt(0));
      if (!outcome.granted) return;
      granted += 1;
      const { reservation } = outcome;
      const { tokens, costMicros } = reservation;
      const after = settle(outcome.accounts, { reservation, tokens, costMicros, usage: null, unconfirmed: false });
      const next = reserve(after, { ...first, outputTokens: first.minimumOutputTokens, opensStep: true }, momentAt(0));
      const isRefused = !next.granted && next.reason === "budget";
      expect(reservation.isLast === true).toBe(isRefused);
      const met = isRefused ? { accountId: next.accountId, limit: next.limit } : {};
      expect(outcome.last ?? {}).toMatchObject(met);
    }),
    { numRuns: 2000 },
  );
  expect(granted).toBeGreaterThan(200);
});
