import { expect, test } from "vitest";
import { forecastsOf, type OuterLimits, outerAccount } from "../../src/budget/index.ts";

const DAY_MS = 86_400_000;
const perDay: OuterLimits = {
  scope: "owner",
  name: "ada",
  window: "perDay",
  startsAt: 0,
  endsAt: DAY_MS,
  limits: { maxCostMicros: 1_000 },
  revision: 0,
};

function spent(costMicros: number, changes: Partial<OuterLimits> = {}) {
  const account = outerAccount(undefined, { ...perDay, ...changes }, { parentId: null, now: 0 });
  return { ...account, used: { ...account.used, costMicros }, reserved: { tokens: 0, costMicros: 100 } };
}

test("an account that is spent evenly meets its limit before it renews, or not", () => {
  const [fast] = forecastsOf(spent(500), DAY_MS / 4);
  expect(fast).toMatchObject({ used: 500, reserved: 100, max: 1_000, renewsAt: DAY_MS, expected: 2_000 });
  // 400 are left, at 2,000 a day.
  expect(fast?.metAt).toBe(DAY_MS / 4 + DAY_MS / 5);
  expect(forecastsOf(spent(200), DAY_MS / 2)).toMatchObject([{ expected: 400, metAt: null }]);
  expect(forecastsOf(spent(0), DAY_MS / 2)).toMatchObject([{ expected: 0, metAt: null }]);
  expect(forecastsOf(spent(1_000), DAY_MS / 2)).toMatchObject([{ metAt: DAY_MS / 2 }]);
});

test("an account that never renews has no expected use, but a time at which its limit is met", () => {
  const total = { window: "total", endsAt: null } as const;
  expect(forecastsOf(spent(500, total), DAY_MS)).toMatchObject([{ expected: null, metAt: DAY_MS + (DAY_MS * 4) / 5 }]);
  expect(forecastsOf(spent(1, total), Number.MAX_SAFE_INTEGER - 1)).toMatchObject([{ metAt: null }]);
});
