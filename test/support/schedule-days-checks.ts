import { expect } from "vitest";
import type { PlayedDays } from "./schedule-days.ts";

/** Each expected time has one turn, which has ended, and there are no others. */
export function assertDays({ schedules, turns }: PlayedDays): void {
  expect(turns.filter(({ status }) => status !== "completed")).toEqual([]);
  for (const { key, opened, expected, stored } of schedules) {
    expect({ key, opened }).toEqual({ key, opened: expected });
    expect(stored?.counts).toMatchObject({ opened: expected.length, busy: 0, failed: 0 });
  }
}
