/** A pattern by its fields, so that the expected times need no parser. */
export interface WallTimes {
  readonly timezone: string;
  readonly hours: readonly number[];
  readonly minutes: readonly number[];
  readonly seconds: readonly number[];
  /** Default: every day. `date` is midnight of the day in UTC. */
  readonly isDay?: ((date: Date) => boolean) | undefined;
  /** The pattern repeats within the hour: through both hours in autumn, and nothing in the gap of spring. Default: fixed times. */
  readonly repeats?: boolean | undefined;
}

const DAY = 86_400_000;
const QUARTER = 900_000;
const formats = new Map<string, Intl.DateTimeFormat>();
const offsets = new Map<string, number>();

/** What a clock on the wall shows, minus UTC, in milliseconds. Clocks change at quarters of an hour. */
function offsetAt(timezone: string, time: number): number {
  const at = Math.floor(time / QUARTER) * QUARTER;
  const key = `${timezone} ${at}`;
  const known = offsets.get(key);
  if (known !== undefined) return known;
  const format = formats.get(timezone) ?? wallFormat(timezone);
  formats.set(timezone, format);
  const parts = Object.fromEntries(format.formatToParts(at).map(({ type, value }) => [type, Number(value)]));
  const { year = 0, month = 1, day = 1, hour = 0, minute = 0 } = parts;
  const offset = Date.UTC(year, month - 1, day, hour, minute) - at;
  offsets.set(key, offset);
  return offset;
}

function wallFormat(timeZone: string): Intl.DateTimeFormat {
  const numeric = "numeric" as const;
  const fields = { year: numeric, month: numeric, day: numeric, hour: numeric, minute: numeric };
  return new Intl.DateTimeFormat("en-US", { timeZone, hourCycle: "h23", ...fields });
}

/** The moments at which the wall shows this, given as if it were UTC: none in a gap, two when an hour repeats. */
function momentsOf(timezone: string, wall: number): number[] {
  const found = [wall - DAY, wall, wall + DAY].map((near) => wall - offsetAt(timezone, near));
  return [...new Set(found)].filter((time) => time + offsetAt(timezone, time) === wall).sort((a, b) => a - b);
}

/** The moment at which the gap ends that contains a wall time. */
function endOfGap(timezone: string, wall: number): number {
  let before = Math.floor((wall - 2 * DAY) / QUARTER);
  let after = Math.ceil((wall + 2 * DAY) / QUARTER);
  while (after - before > 1) {
    const middle = Math.floor((before + after) / 2);
    if (middle * QUARTER + offsetAt(timezone, middle * QUARTER) > wall) after = middle;
    else before = middle;
  }
  return after * QUARTER;
}

/** The times after `from` up to `until`, by the documented rules for changes of clocks. */
export function wallTimesBetween(of: WallTimes, from: number, until: number): number[] {
  const { timezone, hours, minutes, seconds, isDay = () => true, repeats = false } = of;
  const times = new Set<number>();
  for (let day = Math.floor(from / DAY) * DAY - 2 * DAY; day <= until + 2 * DAY; day += DAY) {
    const isSkipped = [0, 12, 23].every((hour) => momentsOf(timezone, day + hour * 3_600_000).length === 0);
    if (isSkipped || !isDay(new Date(day))) continue;
    for (const hour of hours) {
      for (const minute of minutes) {
        for (const second of seconds) {
          const wall = day + ((hour * 60 + minute) * 60 + second) * 1_000;
          const moments = momentsOf(timezone, wall);
          if (repeats) for (const time of moments) times.add(time);
          else times.add(moments[0] ?? endOfGap(timezone, wall));
        }
      }
    }
  }
  return [...times].filter((time) => time > from && time <= until).sort((a, b) => a - b);
}
