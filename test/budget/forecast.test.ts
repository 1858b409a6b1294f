import { expect, test } from "vitest";
import { type Forecast, forecastsOf, isNewForecast, type OuterLimits, outerAccount } from "../../src/budget/index.ts";

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

const some: Forecast = {
  limit: "maxTokens",
  used: 200,
  reserved: 0,
  max: 1_000,
  renewsAt: null,
  expected: null,
  metAt: 100_000,
};

function isNew(changes: Partial<Forecast>, at = 10_000): boolean {
  return isNewForecast({ forecast: some, at: 0 }, { forecast: { ...some, ...changes }, at });
}

test("a forecast is told when it changes by more than a tenth of the time that was left, at most once a second", () => {
  expect(isNew({})).toBe(false);
  expect(isNew({ metAt: 110_000 })).toBe(false);
  expect(isNew({ metAt: 110_001 })).toBe(true);
  expect(isNew({ metAt: 89_999 })).toBe(true);
  expect(isNew({ metAt: 50_000 }, 999)).toBe(false);
  expect(isNew({ metAt: 50_000 }, 1_000)).toBe(true);
  // The clock was set back: the last one is not the newest.
  expect(isNew({ metAt: 50_000 }, -5_000)).toBe(true);
  expect(isNew({ metAt: null })).toBe(true);
  expect(isNew({ max: 2_000 })).toBe(true);
});

test("a met limit is told once", () => {
  const met = { forecast: { ...some, used: 1_000, metAt: 10_000 }, at: 10_000 };
  expect(isNew(met.forecast)).toBe(true);
  expect(isNewForecast(met, { forecast: { ...met.forecast, used: 1_100, metAt: 90_000 }, at: 90_000 })).toBe(false);
});

test("the first forecast comes with a tenth of the limit, and only if it will be met", () => {
  expect(isNewForecast(undefined, { forecast: { ...some, used: 99 }, at: 0 })).toBe(false);
  expect(isNewForecast(undefined, { forecast: { ...some, used: 100 }, at: 0 })).toBe(true);
  expect(isNewForecast(undefined, { forecast: { ...some, metAt: null }, at: 0 })).toBe(false);
  // A new window begins anew.
  expect(isNew({ renewsAt: 500_000, metAt: null })).toBe(false);
});
