import { describe, expect, test } from "vitest";
import { parseDuration } from "../../src/runtime/schedules/duration.ts";
import { compactTime } from "../../src/runtime/schedules/open-scheduled-turn.ts";
import { dueRuns, instantOf, timeSeriesOf, type TimeSource } from "../../src/runtime/schedules/schedule-times.ts";
import { amount } from "../support/full.ts";
import { type WallTimes, wallTimesBetween } from "../support/schedule-oracle.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
/** More than a year, so that all changes of clocks are within. */
const DAYS = amount(3 * 365, 400);

function cronOf(cron: string, timezone: string, bounds: Partial<TimeSource> = {}): TimeSource {
  return { times: { kind: "cron", cron, timezone }, startAt: null, endAt: null, ...bounds };
}

function everyOf(everyMs: number, from: string, bounds: Partial<TimeSource> = {}): TimeSource {
  return { times: { kind: "every", everyMs, from: Date.parse(from) }, startAt: null, endAt: null, ...bounds };
}

/** The next times after a moment, as ISO texts. */
async function timesAfter(source: TimeSource, after: string, count: number): Promise<string[]> {
  const series = await timeSeriesOf(source);
  const found: string[] = [];
  for (let time = series.next(Date.parse(after)); time !== null && found.length < count; time = series.next(time)) {
    found.push(new Date(time).toISOString().replace(".000", ""));
  }
  return found;
}

/** The wall clock of a time zone at these times. */
function localTimes(times: readonly string[], timeZone: string): string[] {
  return times.map((time) => new Date(time).toLocaleString("sv", { timeZone }).slice(5, 16));
}

describe("cron patterns when clocks change", () => {
  test.each([
    // Spring: 2:00 to 3:00 does not exist in Berlin on March 29, nor in New York on March 8; 2:00 to 2:30 on Lord Howe on October 4.
    ["30 2 * * *", "Europe/Berlin", "2026-03-27T12:00Z", ["03-28 02:30", "03-29 03:00", "03-30 02:30"]],
    ["30 2 * * *", "America/New_York", "2026-03-06T12:00Z", ["03-07 02:30", "03-08 03:00", "03-09 02:30"]],
    ["15 2 * * *", "Australia/Lord_Howe", "2026-10-02T00:00Z", ["10-03 02:15", "10-04 02:30", "10-05 02:15"]],
    ["0 9 * * *", "Europe/Berlin", "2026-03-28T00:00Z", ["03-28 09:00", "03-29 09:00", "03-30 09:00"]],
    // Autumn: 2:30 exists twice in Berlin on October 25, 1:30 in New York on November 1, 1:45 on Lord Howe on April 5.
    ["30 2 * * *", "Europe/Berlin", "2026-10-23T12:00Z", ["10-24 02:30", "10-25 02:30", "10-26 02:30"]],
    ["30 1 * * *", "America/New_York", "2026-10-30T12:00Z", ["10-31 01:30", "11-01 01:30", "11-02 01:30"]],
    ["45 1 * * *", "Australia/Lord_Howe", "2026-04-03T00:00Z", ["04-04 01:45", "04-05 01:45", "04-06 01:45"]],
    // A pattern that repeats within the hour goes on through both hours.
    [
      "*/30 * * * *",
      "Europe/Berlin",
      "2026-10-25T00:10Z",
      ["10-25 02:30", "10-25 02:00", "10-25 02:30", "10-25 03:00"],
    ],
  ] as const)("%s in %s after %s", async (cron, timezone, after, expected) => {
    const times = await timesAfter(cronOf(cron, timezone), after, expected.length);
    expect(localTimes(times, timezone)).toEqual(expected);
  });

  test.each(["Europe/Berlin", "America/New_York", "Australia/Lord_Howe"])(
    "a daily pattern has one time on each date in %s",
    async (timezone) => {
      for (const cron of ["0 0 * * *", "45 1 * * *", "30 2 * * *"]) {
        const times = await timesAfter(cronOf(cron, timezone), "2026-01-01T12:00Z", DAYS);
        const dates = times.map((time) => new Date(time).toLocaleString("sv", { timeZone: timezone }).slice(0, 10));
        const days = (Date.parse(dates.at(-1) ?? "") - Date.parse(dates[0] ?? "")) / (24 * HOUR);
        expect([cron, new Set(dates).size, days + 1]).toEqual([cron, DAYS, DAYS]);
      }
    },
  );
});

describe("times", () => {
  test("every is anchored: its times do not depend on when they are asked for", async () => {
    const source = everyOf(15 * MINUTE, "2026-01-01T00:07:00Z");
    expect(await timesAfter(source, "2026-01-01T00:07:00Z", 2)).toEqual([
      "2026-01-01T00:22:00Z",
      "2026-01-01T00:37:00Z",
    ]);
    expect(await timesAfter(source, "2026-05-05T10:00:01Z", 1)).toEqual(["2026-05-05T10:07:00Z"]);
    expect(await timesAfter(source, "2025-01-01T00:00:00Z", 1)).toEqual(["2026-01-01T00:22:00Z"]);
  });

  test("startAt is the first time of every, and the earliest of cron; endAt is not a time any more", async () => {
    const startAt = Date.parse("2026-01-02T00:00:00Z");
    const endAt = Date.parse("2026-01-02T02:00:00Z");
    const hours = ["2026-01-02T00:00:00Z", "2026-01-02T01:00:00Z"];
    const every = everyOf(HOUR, "2026-01-02T00:00:00Z", { startAt, endAt });
    expect(await timesAfter(every, "2026-01-01T00:00:00Z", 9)).toEqual(hours);
    const cron = cronOf("0 * * * *", "UTC", { startAt, endAt });
    expect(await timesAfter(cron, "2026-01-01T00:00:00Z", 9)).toEqual(hours);
    expect((await timeSeriesOf(cron)).newest(Date.parse("2026-02-01T00:00:00Z"), 3)).toEqual(
      hours.map((at) => Date.parse(at)),
    );
    expect((await timeSeriesOf(every)).newest(Date.parse("2026-02-01T00:00:00Z"), 1)).toEqual([
      Date.parse(hours[1] ?? ""),
    ]);
  });

  test.each([
    ["2026-12-24T18:00", "Europe/Berlin", "2026-12-24T17:00:00.000Z"],
    ["2026-12-24 18:00:30", "America/New_York", "2026-12-24T23:00:30.000Z"],
    ["2026-12-24", "Australia/Lord_Howe", "2026-12-23T13:00:00.000Z"],
    ["2026-12-24T18:00+02:00", "Europe/Berlin", "2026-12-24T16:00:00.000Z"],
    ["2026-12-24T18:00:00.250Z", undefined, "2026-12-24T18:00:00.250Z"],
  ])("%s in %s is %s", async (text, timezone, expected) => {
    expect(new Date(await instantOf(text, timezone, "at")).toISOString()).toBe(expected);
  });

  test.each([
    "2026-12-24T18:00",
    "24.12.2026",
    "2026-02-30T10:00Z",
    "tomorrow",
    Number.NaN,
    -1,
    null,
    new Date("x"),
    {},
  ])("%o is refused", async (value) => {
    await expect(instantOf(value, undefined, "at")).rejects.toThrow(/^at is .*expected a Date, an ISO text such as/);
  });

  test("durations", () => {
    const texts = ["90s", "15m", "1h30m", "2d", "1w", "500ms", "1h 30m", "", "m", "1.5h", "-1m", "1x"];
    expect(texts.map(parseDuration)).toEqual([
      90_000,
      900_000,
      5_400_000,
      172_800_000,
      604_800_000,
      500,
      5_400_000,
      ...Array.from({ length: 5 }, () => undefined),
    ]);
  });

  test("a time in an id", () => {
    expect(compactTime(Date.parse("2027-03-01T09:00:00Z"))).toBe("20270301T090000Z");
    expect(compactTime(Date.parse("2027-03-01T09:00:00.007Z"))).toBe("20270301T090000007Z");
  });
});

describe("what is due", () => {
  const from = "2026-01-01T00:00:00Z";
  const at = (minutes: number): number => Date.parse(from) + minutes * MINUTE;
  const plan = async (ifMissed: "skip" | "once" | "all", nextAt: number, now: number) =>
    dueRuns(await timeSeriesOf(everyOf(10 * MINUTE, from)), { nextAt, ifMissed }, now);

  test("a time that is less than a minute late is not missed", async () => {
    for (const ifMissed of ["skip", "once", "all"] as const) {
      const due = await plan(ifMissed, at(10), at(11));
      expect(due).toEqual({ runs: [at(10)], missed: null, nextAt: at(20) });
    }
  });

  test("missed times are skipped, made up for once, or all", async () => {
    const now = at(31) + 1;
    expect(await plan("skip", at(10), now)).toEqual({ runs: [], missed: { count: 3, last: at(30) }, nextAt: at(40) });
    expect(await plan("once", at(10), now)).toEqual({
      runs: [at(30)],
      missed: { count: 2, last: at(20) },
      nextAt: at(40),
    });
    expect(await plan("all", at(10), now)).toEqual({ runs: [at(10), at(20), at(30)], missed: null, nextAt: at(40) });
  });

  test("a time that is due now stands for missed ones, too", async () => {
    const now = at(30) + 1;
    expect(await plan("skip", at(10), now)).toMatchObject({ runs: [at(30)], missed: { count: 2, last: at(20) } });
    expect(await plan("once", at(10), now)).toMatchObject({ runs: [at(30)], missed: { count: 2, last: at(20) } });
    expect(await plan("all", at(10), now)).toMatchObject({ runs: [at(10), at(20), at(30)], missed: null });
  });

  test("after years without a process the work is bounded", async () => {
    const now = at(10 * 365 * 24 * 60 + 5);
    const all = await plan("all", at(10), now);
    expect(all.runs).toHaveLength(100);
    expect(all.runs.at(-1)).toBe(at(10 * 365 * 24 * 60));
    expect(all).toMatchObject({ missed: { count: 900 }, nextAt: at(10 * 365 * 24 * 60 + 10) });
    expect(await plan("once", at(10), now)).toMatchObject({ runs: [at(10 * 365 * 24 * 60)], missed: { count: 999 } });
    expect((await plan("skip", at(10), now)).runs).toEqual([]);
  });
});

function isSunday(date: Date): boolean {
  return date.getUTCDay() === 0;
}

describe("times equal those of an oracle that reads no patterns", () => {
  const onTheMinute = { seconds: [0] };
  test.each<[string, WallTimes]>([
    ["30 1,2 * * *", { timezone: "America/New_York", hours: [1, 2], minutes: [30], ...onTheMinute }],
    ["30 1-3 * * *", { timezone: "Europe/Berlin", hours: [1, 2, 3], minutes: [30], ...onTheMinute }],
    ["45 1,2 * * *", { timezone: "Australia/Lord_Howe", hours: [1, 2], minutes: [45], ...onTheMinute }],
    ["7 0 0,9 * * *", { timezone: "Pacific/Apia", hours: [0, 9], minutes: [0], seconds: [7] }],
    [
      "20,50 1,2 * * SUN",
      {
        timezone: "America/New_York",
        hours: [1, 2],
        minutes: [20, 50],
        ...onTheMinute,
        isDay: isSunday,
        repeats: true,
      },
    ],
    ["15 9 * * *", { timezone: "Asia/Tokyo", hours: [9], minutes: [15], ...onTheMinute }],
  ])("%s", async (cron, wall) => {
    // Clocks of all these zones change within, and the zone of Samoa skips a day.
    const from = Date.parse("2011-02-20T00:00Z");
    const until = from + 320 * 24 * HOUR;
    const series = await timeSeriesOf(cronOf(cron, wall.timezone));
    const times: number[] = [];
    for (let time = series.next(from); time !== null && time <= until; time = series.next(time)) times.push(time);
    const expected = wallTimesBetween(wall, from, until);
    expect(times.map((time) => new Date(time).toISOString())).toEqual(
      expected.map((time) => new Date(time).toISOString()),
    );
    expect(series.newest(until, 50)).toEqual(expected.slice(-50));
  });

  test("an hour list with a step or an asterisk follows the clock", async () => {
    const source = cronOf("30 */2 * * *", "Europe/Berlin");
    expect(localTimes(await timesAfter(source, "2010-03-27T22:00Z", 3), "Europe/Berlin")).toEqual([
      "03-28 00:30",
      "03-28 04:30",
      "03-28 06:30",
    ]);
  });
});
