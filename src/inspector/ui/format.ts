import type { Account } from "../run-model/account-at.ts";
import { compact, type Cost, dollars, milliseconds } from "../run-model/figures.ts";

export {
  compact,
  type Cost,
  costText,
  costTitle,
  dollars,
  grouped,
  limitWord,
  milliseconds,
  percent,
  plural,
  shortId,
  sinceStart,
} from "../run-model/figures.ts";

/** The total of several agents, runs or accounts. */
export function costSum(costs: readonly Cost[]): Cost {
  const sum = { costMicros: 0, calls: 0, unpricedCalls: 0 };
  for (const { costMicros, calls, unpricedCalls } of costs) {
    sum.costMicros += costMicros ?? 0;
    sum.calls += calls;
    sum.unpricedCalls += unpricedCalls;
  }
  return sum;
}

/** The total of an account and its descendants. */
export function costOf({ models }: Pick<Account, "models">): Cost {
  return costSum(Object.values(models));
}

/** The cost of one call; `costMicros` is `null` if the call had no price. */
export function costOfCall(costMicros: number | null): Cost {
  return { costMicros, calls: 1, unpricedCalls: costMicros === null ? 1 : 0 };
}

const clock = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

export function dateTime(time: number): string {
  return clock.format(time);
}

const timeOfDay = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });

/** The time of day. */
export function shortTime(time: number): string {
  return timeOfDay.format(time);
}

/** An amount of a limit in its unit. */
export function amountText(limit: string, amount: number): string {
  if (limit === "maxActiveMs") return milliseconds(amount);
  return limit === "maxCostMicros" ? dollars(amount) : compact(amount);
}
