import { amountOfLimit } from "./account.ts";
import { limitNames } from "./limit-names.ts";
import type { Account } from "./schemas.ts";

/** The limits whose use a forecast extrapolates: amounts that are spent, not time. */
export type ForecastLimit =
  | "maxTreeSteps"
  | "maxTreeToolCalls"
  | "maxSteps"
  | "maxToolCalls"
  | "maxTokens"
  | "maxCostMicros";

/** How one limit of an account will be used if spending goes on at the present rate. In the limit's unit. */
export interface Forecast {
  readonly limit: ForecastLimit;
  readonly used: number;
  readonly reserved: number;
  readonly max: number;
  /** When the account renews, in milliseconds since the epoch; `null` if it does not. */
  readonly renewsAt: number | null;
  /** The use when the account renews; `null` if it does not renew. */
  readonly expected: number | null;
  /** When the limit will be met, in milliseconds since the epoch; `null` if not before the account renews, or never at this rate. */
  readonly metAt: number | null;
}

/**
 * The forecasts of an account's limits at `now`. The rate is `used / (now - start)`, where the start is that of the account's window, or
 * its opening if it has none; `expected = used + rate × (renewsAt - now)`, and the limit is met when `rate` has used what is neither used
 * nor reserved.
 */
export function forecastsOf(account: Account, now: number): Forecast[] {
  const { limits, used, reserved, outer, openedAt } = account;
  const renewsAt = outer?.endsAt ?? null;
  const elapsed = Math.max(1, now - openedAt);
  return limitNames.flatMap((limit) => {
    const max = limits[limit];
    if (max === undefined || limit === "deadlineAt" || limit === "maxActiveMs") return [];
    const spent = used[amountOfLimit[limit]];
    const held = limit === "maxTokens" ? reserved.tokens : limit === "maxCostMicros" ? reserved.costMicros : 0;
    const rate = spent / elapsed;
    const left = Math.max(0, max - spent - held);
    const at = spent >= max ? now : rate > 0 ? now + Math.ceil(left / rate) : null;
    const isBefore = at !== null && (renewsAt === null || at < renewsAt) && at <= LAST_DATE;
    const expected = renewsAt === null ? null : Math.round(spent + rate * Math.max(0, renewsAt - now));
    return [{ limit, used: spent, reserved: held, max, renewsAt, expected, metAt: isBefore ? at : null }];
  });
}

/** The last moment that a `Date` can hold. */
const LAST_DATE = 8.64e15;

/** A forecast that was made at a moment, in milliseconds since the epoch. */
export interface ForecastAt {
  readonly forecast: Forecast;
  readonly at: number;
}

/** Before this share of a limit is used, its rate says nothing. */
const LEAST_SHARE = 0.1;
/** One limit of an account has at most one new forecast in this time, in milliseconds. */
const SPACING_MS = 1_000;
/** A forecast has changed if its moment moved by more than this share of the time that was left. */
const CHANGED_SHARE = 0.1;

/**
 * Whether a forecast tells something new after the last one that was told, `undefined` if there was none. Depends on its arguments only,
 * so that equal commits have equal forecasts.
 */
export function isNewForecast(last: ForecastAt | undefined, { forecast, at }: ForecastAt): boolean {
  const { used, max, metAt, renewsAt } = forecast;
  if (used < max * LEAST_SHARE) return false;
  if (!last || last.forecast.renewsAt !== renewsAt) return metAt !== null;
  if (Math.abs(at - last.at) < SPACING_MS) return false;
  const before = last.forecast;
  if (before.max !== max || before.used >= before.max !== used >= max) return true;
  if (before.metAt === null || metAt === null) return before.metAt !== metAt;
  return used < max && Math.abs(metAt - before.metAt) > (before.metAt - last.at) * CHANGED_SHARE;
}
