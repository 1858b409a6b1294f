import { assert, double, integer, property } from "fast-check";
import { expect, it } from "vitest";
import { backoffDelay } from "../../src/base/index.ts";
import { InvalidInputError } from "../../src/errors/index.ts";

it("doubles the longest wait at every attempt, up to the cap", () => {
  const almostOne = 1 - Number.EPSILON;
  const longest = [1, 2, 3, 4, 5, 1000].map((n) => backoffDelay(n, almostOne, { baseMs: 100, capMs: 1000 }) + 1);
  expect(longest).toEqual([100, 200, 400, 800, 1000, 1000]);
});

it("spreads the waits over the whole range", () => {
  expect([0, 0.25, 0.5].map((random) => backoffDelay(3, random, { baseMs: 100 }))).toEqual([0, 100, 200]);
  expect(backoffDelay(1, 0.5)).toBe(250);
});

it("is always a whole number of milliseconds from 0 to the cap", () => {
  const attempt = integer({ min: 1 });
  const random = double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
  const duration = double({ min: 0, max: 1e9, noNaN: true });
  assert(
    property(attempt, random, duration, duration, (n, at, baseMs, capMs) => {
      const delay = backoffDelay(n, at, { baseMs, capMs });
      return Number.isInteger(delay) && delay >= 0 && delay <= capMs;
    }),
  );
});

it.each([
  [0, 0.5, {}],
  [1.5, 0.5, {}],
  [1, 1, {}],
  [1, Number.NaN, {}],
  [1, 0.5, { baseMs: -1 }],
  [1, 0.5, { capMs: Number.NaN }],
])("refuses attempt %d, random %d, %j", (attempt, random, options) => {
  expect(() => backoffDelay(attempt, random, options)).toThrow(InvalidInputError);
});
