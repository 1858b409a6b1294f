import { type Account, usedAt } from "./account.ts";
import { amountOfLimit, type LimitName } from "./limits.ts";

/** A limit that was met, in its own unit: steps, tokens, micro-dollars, milliseconds, calls; a deadline's are moments. */
export interface MetLimit {
  readonly accountId: string;
  readonly limit: LimitName;
  readonly used: number;
  readonly max: number;
}

/** How far the account has used one of its limits at `now`; a deadline is told by `wallNow`. */
export function metLimit(account: Account, limit: LimitName, now: number, wallNow: number = now): MetLimit {
  const used = limit === "deadlineAt" ? wallNow : usedAt(account, now)[amountOfLimit[limit]];
  return { accountId: account.id, limit, used, max: account.limits[limit] ?? 0 };
}
