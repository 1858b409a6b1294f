import { type Account, activeUntil } from "../budget/index.ts";
import type { Timer } from "../state/index.ts";
import type { Tables } from "./tables.ts";

/**
 * Sets the alarms that a change of an account calls for and returns them: its deadline when it is opened, the end of its
 * active time when work begins (0 to 1). Clears the latter when work ends (1 to 0).
 */
export function changeTimers(tables: Tables, tenant: string, before: Account | undefined, account: Account): Timer[] {
  const { agentId, id: accountId, limits } = account;
  const timers: Timer[] = [];
  const set = (limit: "deadlineAt" | "maxActiveMs", dueAt: number): void => {
    const timer: Timer = { kind: "limit", tenant, agentId, id: `${limit}:${accountId}`, dueAt, accountId, limit };
    tables.setTimer(timer);
    timers.push(timer);
  };
  if (limits.deadlineAt !== undefined && !before) set("deadlineAt", limits.deadlineAt);
  const until = activeUntil(account);
  const untilBefore = before && activeUntil(before);
  if (until === untilBefore) return timers;
  if (until !== undefined) set("maxActiveMs", until);
  else tables.clearTimer({ tenant, agentId }, `maxActiveMs:${accountId}`);
  return timers;
}
