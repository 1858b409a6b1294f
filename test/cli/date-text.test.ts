import { expect, test } from "vitest";
import { dateOf } from "../../src/cli/budget-options.ts";

const now = Date.UTC(2026, 10, 21, 12);

test.each([
  ["90s", "2026-11-21T12:01:30.000Z"],
  ["15m", "2026-11-21T12:15:00.000Z"],
  ["2h", "2026-11-21T14:00:00.000Z"],
  ["2026-11-21T18:00Z", "2026-11-21T18:00:00.000Z"],
  ["2026-11-21T18:00:05+02:00", "2026-11-21T16:00:05.000Z"],
])("%s is a time", (text, iso) => {
  expect(dateOf(text, now)?.toISOString()).toBe(iso);
});

test.each([
  "",
  "tomorrow",
  "15",
  "1.5h",
  "2d",
  "2026-11-21",
  "2026-13-41T18:00Z",
  "2026-02-31T10:00",
  "18:00",
  "Infinity",
])("%j is not a time", (text) => {
  expect(dateOf(text, now)).toBeUndefined();
});
