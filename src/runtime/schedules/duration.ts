import { describeValue, type OptionRule } from "../../base/index.ts";
import { InvalidInputError } from "../../errors/index.ts";

const unitsMs = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 } as const;

/** Longest and shortest distance between two runs, in milliseconds. */
const SHORTEST_MS = 1_000;
const LONGEST_MS = 10 * 366 * unitsMs.d;

const durationPattern = /^(?:\d+(?:ms|[smhdw]))+$/;

/** Milliseconds of `"90s"`, `"15m"`, `"1h30m"`, `"2d"` or `"1w"`; a day has 24 hours. `undefined` for any other text. */
export function parseDuration(text: string): number | undefined {
  const compact = text.replaceAll(" ", "");
  if (!durationPattern.test(compact)) return undefined;
  const parts = [...compact.matchAll(/(\d+)(ms|[smhdw])/g)];
  return parts.reduce((sum, [, count, unit]) => sum + Number(count) * unitsMs[unit as keyof typeof unitsMs], 0);
}

/** Accepts a duration as text or in milliseconds. Returns milliseconds. */
export const durationRule: OptionRule = (value, where) => {
  const ms = typeof value === "string" ? parseDuration(value) : value;
  if (typeof ms === "number" && Number.isSafeInteger(ms) && ms >= SHORTEST_MS && ms <= LONGEST_MS) return ms;
  throw new InvalidInputError(
    `${where} is ${describeValue(value)}; expected a duration from 1 second to 10 years: a text such as "90s", "15m", "1h30m", "2d" or "1w", or whole milliseconds`,
  );
};
