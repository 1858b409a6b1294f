import { expect, test } from "vitest";
import { Calendar, outerAccount, type OuterLimits } from "../../src/budget/index.ts";

const HOUR_MS = 3_600_000;
const limits = { maxTokens: 100 };

function askedAt(calendar: Calendar, now: number): OuterLimits {
  return { scope: "owner", name: "ada", window: "perDay", limits, revision: 0, ...calendar.periodAt("perDay", now) };
}

test("an account renews once a day, though two processes have different time zones", () => {
  const calendars = [new Calendar("UTC"), new Calendar("Asia/Tokyo"), new Calendar("America/New_York")];
  const start = Date.parse("2026-03-07T12:00:00Z");
  let account = outerAccount(undefined, askedAt(new Calendar("UTC"), start), { parentId: null, now: start });
  let renewals = 0;
  for (let hour = 0; hour < 24 * 10; hour += 1) {
    const now = start + hour * HOUR_MS;
    for (const calendar of calendars) {
      const next = outerAccount(account, askedAt(calendar, now), { parentId: null, now });
      if (next.outer?.startsAt !== account.outer?.startsAt) renewals += 1;
      account = next;
    }
  }
  expect(renewals).toBeLessThanOrEqual(10);
  expect(renewals).toBeGreaterThan(7);
});

/** When a window of the time zone starts and ends. */
function periodIn(zone: string, window: "perDay" | "perMonth", now: string): (string | null)[] {
  const { startsAt, endsAt } = new Calendar(zone).periodAt(window, Date.parse(now));
  return [startsAt, endsAt].map((moment) => (moment === null ? null : new Date(moment).toISOString()));
}

test("days and months begin where their date begins, also where clocks change or skip midnight", () => {
  expect(periodIn("Europe/Berlin", "perDay", "2026-03-29T12:00:00Z")).toEqual([
    "2026-03-28T23:00:00.000Z",
    "2026-03-29T22:00:00.000Z",
  ]);
  // In Santiago the clock goes from 23:59 to 01:00.
  expect(periodIn("America/Santiago", "perDay", "2026-09-06T12:00:00Z")).toEqual([
    "2026-09-06T04:00:00.000Z",
    "2026-09-07T03:00:00.000Z",
  ]);
  expect(periodIn("UTC", "perMonth", "2028-02-29T23:59:59.999Z")).toEqual([
    "2028-02-01T00:00:00.000Z",
    "2028-03-01T00:00:00.000Z",
  ]);
  expect(periodIn("Asia/Kolkata", "perMonth", "2026-12-31T18:30:00Z")).toEqual([
    "2026-12-31T18:30:00.000Z",
    "2027-01-31T18:30:00.000Z",
  ]);
});

test("days follow each other without a gap where clocks change, also at midnight", () => {
  const changes = [
    ["Europe/Berlin", "2026-03-29"],
    ["Europe/Berlin", "2026-10-25"],
    ["America/Santiago", "2026-09-06"],
    ["America/Santiago", "2026-04-05"],
    ["Africa/Cairo", "2026-04-24"],
    ["Africa/Cairo", "2026-10-30"],
    ["Asia/Beirut", "2026-03-29"],
    ["Asia/Beirut", "2026-10-25"],
    ["America/Nuuk", "2026-10-25"],
    ["Australia/Lord_Howe", "2026-04-05"],
  ] as const;
  for (const [zone, date] of changes) {
    const calendar = new Calendar(zone);
    let period = calendar.periodAt("perDay", Date.parse(`${date}T12:00:00Z`) - 60 * HOUR_MS);
    const hours: number[] = [];
    for (let day = 0; day < 5; day += 1) {
      const end = period.endsAt ?? 0;
      hours.push((end - period.startsAt) / HOUR_MS);
      expect(calendar.periodAt("perDay", end - 1), `${zone} ${date}`).toEqual(period);
      const next = calendar.periodAt("perDay", end);
      expect(next.startsAt, `${zone} ${date}`).toBe(end);
      period = next;
    }
    // One of the days is longer or shorter.
    expect(
      hours.filter((length) => length !== 24 && length >= 23 && length <= 25),
      `${zone} ${date}`,
    ).toHaveLength(1);
    expect(hours.filter((length) => length === 24)).toHaveLength(4);
  }
});
