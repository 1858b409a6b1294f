import { type Account, alarmOf, type LimitAlarm, type TimeLimit } from "../../budget/index.ts";
import { CorruptRecordError } from "../../errors/index.ts";
import type { Timer } from "../../state/index.ts";
import type { Tables } from "./tables.ts";

/** A corrupt timer never fires, and does not keep others from firing: it is reported once and left as it is. */
export class CorruptTimers {
  readonly #told = new Set<string>();

  /** Undefined for a corrupt timer. */
  skipCorrupt<T>(read: () => T): T | undefined {
    try {
      return read();
    } catch (error) {
      if (!(error instanceof CorruptRecordError)) throw error;
      const { message } = error;
      if (!this.#told.has(message)) {
        this.#told.add(message);
        process.emitWarning(`${message}; it does not ring`, { code: "TROUPE_CORRUPT_RECORD" });
      }
      return undefined;
    }
  }
}

const timeLimits = ["deadlineAt", "maxActiveMs"] as const satisfies readonly TimeLimit[];

/**
 * Sets the timers that a change of an account requires and returns them. Each limit on time has one timer: first for
 * its warning, then for the limit. A deadline's runs from the opening of the account on, that of active time while
 * somebody works.
 */
export function changeTimers(tables: Tables, tenant: string, before: Account | undefined, account: Account): Timer[] {
  if (before && hasSameAlarms(before, account)) return [];
  const timers: Timer[] = [];
  for (const limit of timeLimits) {
    if (account.limits[limit] === undefined) continue;
    const alarm = alarmOf(account, limit);
    const known = before && alarmOf(before, limit);
    if (alarm?.dueAt === known?.dueAt && alarm?.limitAt === known?.limitAt) continue;
    if (alarm) timers.push(setLimitTimer(tables, tenant, account, limit, alarm));
    else tables.clearTimer({ tenant, agentId: account.agentId }, limitTimerId(limit, account.id));
  }
  return timers;
}

/** Whether nothing has changed that determines when a timer is due, as with most changes of an account. */
function hasSameAlarms(before: Account, account: Account): boolean {
  return (
    before.activeSince === account.activeSince &&
    before.used.activeMs === account.used.activeMs &&
    before.warned === account.warned &&
    before.limits === account.limits
  );
}

export function setLimitTimer(
  tables: Tables,
  tenant: string,
  { id: accountId, agentId }: Account,
  limit: TimeLimit,
  { dueAt, limitAt }: LimitAlarm,
): Timer {
  const id = limitTimerId(limit, accountId);
  const isWarning = dueAt < limitAt ? { limitAt } : {};
  const timer: Timer = { kind: "limit", tenant, agentId, id, dueAt, accountId, limit, ...isWarning };
  tables.setTimer(timer);
  return timer;
}

export function limitTimerId(limit: TimeLimit, accountId: string): string {
  return `${limit}:${accountId}`;
}
