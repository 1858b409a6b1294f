// Many days of schedules, in zones whose clocks change, with two processes that die and outages: each time opens one turn, at the moment
// that an oracle without the parser expects.
import { expect, test } from "vitest";
import { randomCases } from "../support/full.ts";
import { playDays } from "../support/schedule-days.ts";
import { memoryDeployment } from "../support/schedule-days-here.ts";
import { assertDays } from "../support/schedule-days-checks.ts";

const days = randomCases(60, 4);

test(`each time of ${days} days opens one turn, in spite of kills and outages`, { timeout: 3_600_000 }, async () => {
  const seed = Number(process.env["TROUPE_SEED"] ?? 42);
  const played = await playDays(memoryDeployment(), { days, seed, deathRate: 0.22, awakeRate: 0.05 });
  assertDays(played);
  expect(played.deaths).toBeGreaterThan(days / 20);
});
