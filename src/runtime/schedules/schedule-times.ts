import { describeValue, wordsOfThrown } from "../../base/index.ts";
import { InvalidInputError } from "../../errors/index.ts";
import type { Schedule } from "../../state/index.ts";

/** A time that no process has handled for this long is missed, in milliseconds. Until then it is only late. */
export const MISSED_AFTER_MS = 60_000;
/** Maximum number of turns that `ifMissed: "all"` opens at once. */
export const MOST_CAUGHT_UP = 100;
/** Missed times are counted up to this number. */
const MOST_COUNTED = 1_000;

/** The times of a schedule, in milliseconds since the epoch. */
export interface TimeSeries {
  /** The first time after another one; `null` if none is left. */
  next(after: number): number | null;
  /** The last times up to a moment, oldest first; at most `count`. */
  newest(until: number, count: number): number[];
}

/** What defines the times of a schedule. */
export type TimeSource = Pick<Schedule, "times" | "startAt" | "endAt">;

/** Loads the cron parser only for a schedule that has a pattern. Throws `InvalidInputError` for an invalid pattern. */
export async function timeSeriesOf(source: TimeSource): Promise<TimeSeries> {
  return within(source, await unboundedSeries(source));
}

async function unboundedSeries({ times, startAt }: TimeSource): Promise<TimeSeries> {
  switch (times.kind) {
    case "at":
      return {
        next: (after) => (times.at > after ? times.at : null),
        newest: (until, count) => (times.at <= until && count > 0 ? [times.at] : []),
      };
    case "every":
      return everySeries(times.everyMs, startAt === null ? times.from + times.everyMs : startAt);
    case "cron":
      return await cronSeries(times.cron, times.timezone);
    default:
      return times satisfies never;
  }
}

function everySeries(everyMs: number, first: number): TimeSeries {
  const timeOf = (index: number): number => first + index * everyMs;
  return {
    next: (after) => timeOf(Math.max(0, Math.floor((after - first) / everyMs) + 1)),
    newest: (until, count) => {
      const last = Math.floor((until - first) / everyMs);
      const from = Math.max(0, last - count + 1);
      return Array.from({ length: Math.max(0, last - from + 1) }, (_, index) => timeOf(from + index));
    },
  };
}

async function cronSeries(pattern: string, timezone: string): Promise<TimeSeries> {
  const { Cron } = await import("croner");
  const options = { timezone, mode: "5-or-6-parts", paused: true } as const;
  const whole = new Cron(pattern, options);
  const crons = fixedTimesOf(pattern)?.map((one) => new Cron(one, options)) ?? [whole];
  return {
    next: (after) => {
      const times = crons.flatMap((cron) => cron.nextRun(new Date(after))?.getTime() ?? []);
      return times.length === 0 ? null : Math.min(...times);
    },
    newest: (until, count) => {
      const times = crons.flatMap((cron) => cron.previousRuns(count, new Date(until)).map((date) => date.getTime()));
      return [...new Set(times)].sort((one, other) => one - other).slice(-count);
    },
  };
}

/**
 * The patterns of the single times of a day, for a pattern with one minute and several named hours. The parser treats only a single time as
 * fixed when clocks change: of `30 1,2 * * *` it would leave out the second time in spring, and run the first one twice in autumn.
 * `undefined` for any other pattern, which must be valid.
 */
function fixedTimesOf(pattern: string): string[] | undefined {
  const fields = pattern.trim().split(/\s+/);
  const [hours = "", minute = "", second = "0"] = fields.slice(0, -3).toReversed();
  if (!/^\d+$/.test(minute) || !/^\d+$/.test(second) || !/^[\d,-]*[,-][\d,-]*$/.test(hours)) return undefined;
  const named = hours.split(",").flatMap((part) => {
    const [from = 0, to = from] = part.split("-").map(Number);
    return Array.from({ length: to - from + 1 }, (_, index) => from + index);
  });
  return [...new Set(named)].map((hour) => fields.with(fields.length - 4, String(hour)).join(" "));
}

/** Leaves out the times before `startAt`, and those from `endAt` on. */
function within({ startAt, endAt }: TimeSource, series: TimeSeries): TimeSeries {
  const start = startAt ?? Number.NEGATIVE_INFINITY;
  const end = endAt ?? Number.POSITIVE_INFINITY;
  return {
    next: (after) => {
      const next = series.next(Math.max(after, start - 1));
      return next !== null && next < end ? next : null;
    },
    newest: (until, count) => series.newest(Math.min(until, end - 1), count).filter((time) => time >= start),
  };
}

/** What is to be done for a schedule at one moment. */
export interface DueRuns {
  /** The times for which a turn is opened, oldest first. */
  readonly runs: readonly number[];
  /** The times that are left out. `last` is the newest of them; `count` stops at about 1,000. */
  readonly missed: { readonly count: number; readonly last: number } | null;
  /** The first time after now. */
  readonly nextAt: number | null;
}

/**
 * Decides about all times from `nextAt` up to `now`. Times of the last minute run, unless others before them were missed. Of missed times
 * `skip` runs none and `all` the newest 100; `once` runs the newest time that is due, for all of them.
 */
export function dueRuns(
  series: TimeSeries,
  { nextAt, ifMissed }: { readonly nextAt: number; readonly ifMissed: Schedule["ifMissed"] },
  now: number,
): DueRuns {
  const due = dueTimes(series, nextAt, now);
  const isLate = (time: number): boolean => time < now - MISSED_AFTER_MS;
  const wereMissed = due.newest.some(isLate);
  const runs = wereMissed && ifMissed === "once" ? due.newest.slice(-1) : due.newest.filter(runsWhen(ifMissed, isLate));
  const left = due.newest.filter((time) => !runs.includes(time));
  const count = due.count - runs.length;
  return {
    runs,
    missed: count === 0 ? null : { count, last: left.at(-1) ?? nextAt },
    nextAt: series.next(now),
  };
}

function runsWhen(ifMissed: Schedule["ifMissed"], isLate: (time: number) => boolean): (time: number) => boolean {
  return ifMissed === "skip" ? (time) => !isLate(time) : () => true;
}

/** The newest due times, oldest first, and the number of all of them. */
function dueTimes(
  series: TimeSeries,
  nextAt: number,
  now: number,
): { readonly newest: readonly number[]; readonly count: number } {
  const found: number[] = [];
  let time: number | null = nextAt;
  for (; time !== null && time <= now && found.length < MOST_COUNTED; time = series.next(time)) found.push(time);
  const isComplete = time === null || time > now;
  const newest = isComplete ? found : series.newest(now, MOST_CAUGHT_UP);
  return { newest: newest.slice(-MOST_CAUGHT_UP), count: found.length };
}

/** Throws `InvalidInputError` for anything but an IANA time zone or `UTC`. */
export function assertTimezone(timezone: string, where: string): void {
  try {
    Intl.DateTimeFormat("en", { timeZone: timezone });
  } catch {
    throw new InvalidInputError(
      `${where} is ${describeValue(timezone)}; expected "UTC" or a name of the IANA time zone database, such as "Europe/Berlin"`,
    );
  }
}

/** Throws `InvalidInputError` that explains what is wrong with a cron pattern, and for one that never matches. */
export async function assertCron(pattern: string, timezone: string, where: string): Promise<void> {
  const form = `expected five fields (minute, hour, day of month, month, day of week), six with the second in front, or a name such as @daily`;
  let next: number | null;
  try {
    next = (await cronSeries(pattern, timezone)).next(0);
  } catch (error) {
    const found = wordsOfThrown(error)
      .replace(/^(?:[A-Za-z]*Error: )?CronPattern: /, "")
      .replace(/\.?$/, "");
    // The form below names the number of fields that are allowed here.
    const why = found.includes("parts are required") ? "wrong number of fields" : found;
    throw new InvalidInputError(`${where} is ${describeValue(pattern)}: ${why}; ${form}`, { cause: error });
  }
  if (next !== null) return;
  throw new InvalidInputError(`${where} is ${describeValue(pattern)}, which matches no date; ${form}`);
}

const isoPattern = /^\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,3})?)?)?(Z|[+-]\d{2}:?\d{2})?$/i;

/**
 * Milliseconds since the epoch of a date, an ISO text, or milliseconds. A text without an offset is a time in `timezone`. Throws
 * `InvalidInputError`.
 */
export async function instantOf(value: unknown, timezone: string | undefined, where: string): Promise<number> {
  const at = await readInstant(value, timezone);
  if (typeof at === "number" && Number.isSafeInteger(at) && at > 0) return at;
  const needsZone = at === "no zone" ? " The text has no offset: add Z or +02:00, or set timezone." : "";
  throw new InvalidInputError(
    `${where} is ${describeValue(value)}; expected a Date, an ISO text such as "2027-03-01T09:00:00Z", or whole milliseconds since the epoch.${needsZone}`,
  );
}

async function readInstant(value: unknown, timezone: string | undefined): Promise<unknown> {
  if (value instanceof Date) return value.getTime();
  if (typeof value !== "string") return value;
  const [isIso, offset] = isoPattern.exec(value.trim()) ?? [];
  if (isIso === undefined || !isDate(isIso.slice(0, 10))) return undefined;
  if (offset !== undefined) return Date.parse(isIso.replace(" ", "T"));
  if (timezone === undefined) return "no zone";
  const { Cron } = await import("croner");
  const local = isIso.length === 10 ? `${isIso}T00:00:00` : isIso.replace(" ", "T").replace(/\.\d+$/, "");
  try {
    return new Cron(local.length === 16 ? `${local}:00` : local, { timezone, paused: true })
      .nextRun(new Date(0))
      ?.getTime();
  } catch {
    return undefined;
  }
}

/** Whether the day exists: JavaScript reads February 31 as March 3. */
function isDate(day: string): boolean {
  const at = Date.parse(`${day}T00:00:00Z`);
  return Number.isFinite(at) && new Date(at).toISOString().startsWith(day);
}
