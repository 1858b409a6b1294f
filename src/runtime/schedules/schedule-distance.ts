import { InvalidInputError } from "../../errors/index.ts";
import { timeSeriesOf, type TimeSource } from "./schedule-times.ts";

/** The distance between two times of a cron pattern is checked for this many of them, and for this long. */
const TIMES_CHECKED = 50;
const CHECKED_MS = 2 * 366 * 86_400_000;

interface Distance {
  /** The function as the caller writes it. */
  readonly of: string;
  readonly minDistanceMs: number;
}

/** Throws `InvalidInputError` if a single time is nearer than allowed. A repeated time may come soon. */
export function assertLater({ times }: TimeSource, now: number, { of, minDistanceMs }: Distance): void {
  if (times.kind !== "at" || times.at <= now || times.at - now >= minDistanceMs) return;
  throw new InvalidInputError(`${of}: the time is less than ${secondsOf(minDistanceMs)} from now; give a later one`);
}

/** Throws `InvalidInputError` if two times are nearer to each other than allowed. */
export async function assertApart(source: TimeSource, now: number, { of, minDistanceMs }: Distance): Promise<void> {
  const series = await timeSeriesOf(source);
  let time = series.next(now);
  for (let count = 0; time !== null && time < now + CHECKED_MS && count < TIMES_CHECKED; count += 1) {
    const next = series.next(time);
    if (next !== null && next - time < minDistanceMs) {
      throw new InvalidInputError(
        `${of}: two of the times are less than ${secondsOf(minDistanceMs)} apart; use a longer distance`,
      );
    }
    time = next;
  }
}

function secondsOf(ms: number): string {
  return `${Math.ceil(ms / 1_000)} seconds`;
}
