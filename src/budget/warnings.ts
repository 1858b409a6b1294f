import { type Account, activeMsAt, type MetLimit, metLimit } from "./account.ts";
import { amountOfLimit, type LimitName, limitNameSchema } from "./limits.ts";

/** Four fifths of a limit are used, or of the time until a deadline. */
export type BudgetWarning = MetLimit;

/** The share of a limit at which its warning is given. */
export const WARNING_SHARE = 0.8;

/** The limits that are reached by the passing of time alone. */
export type TimeLimit = "maxActiveMs" | "deadlineAt";

/** The next moment of a time limit: steady time for `maxActiveMs`, wall time for a deadline. */
export interface LimitAlarm {
  readonly dueAt: number;
  /** When the limit itself is reached; later than `dueAt` while its warning comes first. */
  readonly limitAt: number;
}

/** Undefined if the account has no such limit, or is idle. */
export function alarmOf(account: Account, limit: TimeLimit): LimitAlarm | undefined {
  const limitAt = limit === "deadlineAt" ? account.limits.deadlineAt : activeUntil(account);
  if (limitAt === undefined) return undefined;
  const warnsAt = account.warned.includes(limit) ? undefined : warningAt(account, limit);
  return { dueAt: warnsAt === undefined ? limitAt : Math.min(warnsAt, limitAt), limitAt };
}

/** When `maxSeconds` is reached if the work goes on; undefined when the account is idle or has no such limit. */
export function activeUntil({ activeSince, limits, used }: Account): number | undefined {
  if (activeSince === null || limits.maxActiveMs === undefined) return undefined;
  return activeSince + Math.max(0, limits.maxActiveMs - used.activeMs);
}

function warningAt({ limits, openedAt, activeSince, used }: Account, limit: TimeLimit): number | undefined {
  const { deadlineAt, maxActiveMs } = limits;
  if (limit === "maxActiveMs") {
    if (!maxActiveMs || activeSince === null) return undefined;
    return activeSince + Math.max(0, Math.ceil(maxActiveMs * WARNING_SHARE) - used.activeMs);
  }
  if (deadlineAt === undefined || deadlineAt <= openedAt) return undefined;
  return openedAt + Math.ceil((deadlineAt - openedAt) * WARNING_SHARE);
}

/**
 * The limits of this account that have passed 80 % at `now` without a warning so far; the returned account remembers them.
 * Of a deadline, 80 % of the time since the account was opened, by `wallNow`; there is no warning once it has passed.
 */
export function newWarnings(
  account: Account,
  now: number,
  wallNow: number = now,
): { readonly account: Account; readonly warnings: readonly BudgetWarning[] } {
  const reached = limitNameSchema.options.filter((limit) => {
    const max = account.limits[limit];
    return max && isNear(account, limit, max, now, wallNow) && !account.warned.includes(limit);
  });
  if (reached.length === 0) return { account, warnings: none };
  const warnings = reached.map((limit) => metLimit(account, limit, now, wallNow));
  return { account: { ...account, warned: [...account.warned, ...reached] }, warnings };
}

const none: readonly BudgetWarning[] = Object.freeze([]);

function isNear(account: Account, limit: LimitName, max: number, now: number, wallNow: number): boolean {
  if (limit === "deadlineAt") {
    const at = warningAt(account, limit);
    return at !== undefined && wallNow >= at && wallNow < max;
  }
  const amount = limit === "maxActiveMs" ? activeMsAt(account, now) : account.used[amountOfLimit[limit]];
  return amount >= max * WARNING_SHARE;
}
