// The statistics of `troupe eval`, against values from statistical tables.
import { describe, expect, test } from "vitest";
import { fisherTest, permutationTest, wilsonInterval } from "../../../src/cli/eval/statistics.ts";

describe("wilsonInterval", () => {
  test.each([
    [0, 10, 0, 0.2775],
    [10, 10, 0.7225, 1],
    [5, 10, 0.2366, 0.7634],
    [81, 263, 0.2553, 0.3662],
    [0, 0, 0, 1],
    [1, 1, 0.2065, 1],
  ])("%i of %i", (passed, runs, low, high) => {
    const interval = wilsonInterval(passed, runs);
    expect(interval.low).toBeCloseTo(low, 3);
    expect(interval.high).toBeCloseTo(high, 3);
  });
});

describe("fisherTest", () => {
  test.each([
    [3, 4, 1, 4, 0.4857],
    [5, 5, 0, 5, 0.0079],
    [1, 10, 11, 14, 0.0028],
    [5, 5, 5, 5, 1],
    [0, 0, 5, 5, 1],
  ])("%i of %i and %i of %i", (onePassed, oneRuns, otherPassed, otherRuns, p) => {
    const one = { passed: onePassed, runs: oneRuns };
    const other = { passed: otherPassed, runs: otherRuns };
    expect(fisherTest(one, other)).toBeCloseTo(p, 3);
    expect(fisherTest(other, one)).toBeCloseTo(p, 3);
  });
});

test("100,000 runs take no time", () => {
  // 1 % less of 50,000 on each side is far outside of chance, 0.1 % is inside.
  const half = { passed: 40_000, runs: 50_000 };
  expect(fisherTest(half, { passed: 39_500, runs: 50_000 })).toBeCloseTo(0.000096, 5);
  expect(fisherTest(half, { passed: 39_950, runs: 50_000 })).toBeGreaterThan(0.6);
  expect(fisherTest(half, half)).toBeCloseTo(1, 6);
  expect(fisherTest({ passed: 50_000, runs: 50_000 }, { passed: 0, runs: 50_000 })).toBe(0);
});

describe("permutationTest", () => {
  test("counts all permutations of few values", () => {
    expect(permutationTest([1, 2, 3, 4, 5], [11, 12, 13, 14, 15])).toBeCloseTo(2 / 252, 6);
    expect(permutationTest([1], [100])).toBe(1);
    expect(permutationTest([5, 5, 5], [5, 5, 5])).toBe(1);
    expect(permutationTest([], [1])).toBe(1);
  });

  test("draws random ones of many, the same in each call", () => {
    const low = Array.from({ length: 30 }, (_, index) => index % 7);
    const high = low.map((value) => value + 3);
    expect(permutationTest(low, high)).toBeLessThan(0.001);
    expect(permutationTest(low, low.toReversed())).toBeGreaterThan(0.9);
    const shifted = low.map((value) => value + 0.6);
    expect(permutationTest(low, shifted)).toBe(permutationTest(low, shifted));
  });
});
