import { describe, expect, test } from "vitest";
import {
  formatCost,
  formatCount,
  formatDuration,
  formatNumberOf,
  formatOf,
  formatRunningTime,
  formatTime,
} from "../../../src/cli/view/format.ts";

describe("amounts are readable", () => {
  test.each([
    [-5, "0 ms"],
    [0, "0 ms"],
    [999, "999 ms"],
    [1_000, "1.0 s"],
    [59_949, "59.9 s"],
    [59_950, "1 m 00 s"],
    [65_000, "1 m 05 s"],
    [3_599_400, "59 m 59 s"],
    [3_600_000, "1 h 00 m"],
    [7_380_000, "2 h 03 m"],
  ])("%i ms is %s", (milliseconds, text) => {
    expect(formatDuration(milliseconds)).toBe(text);
  });

  test.each([
    [0, "0"],
    [999, "999"],
    [1_000, "1k"],
    [1_249, "1.2k"],
    [9_949, "9.9k"],
    [9_950, "10k"],
    [999_499, "999k"],
    [999_500, "1M"],
    [1_250_000, "1.3M"],
    [12_000_000, "12M"],
  ])("%i tokens are %s", (count, text) => {
    expect(formatCount(count)).toBe(text);
  });

  test.each([
    [null, "?"],
    [0, "$0"],
    [12, "$0.000012"],
    [4_200, "$0.0042"],
    [99_000, "$0.0990"],
    [1_250_000, "$1.25"],
  ])("%j millionths of a dollar are %s", (micros, text) => {
    expect(formatCost(micros)).toBe(text);
  });

  test("a running time does not change within a second", () => {
    expect([formatRunningTime(1_999), formatRunningTime(61_999)]).toEqual(["1 s", "1 m 01 s"]);
  });

  test("the rest", () => {
    expect(formatOf("3", "12")).toBe("3/12");
    expect(formatOf("3", undefined)).toBe("3");
    expect([formatNumberOf(1, "step"), formatNumberOf(2, "step")]).toEqual(["1 step", "2 steps"]);
    expect(formatTime(new Date(2026, 0, 2, 3, 4).getTime())).toBe("2026-01-02 03:04");
  });
});
