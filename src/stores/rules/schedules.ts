import type { Schedule } from "../../state/index.ts";
import { isScheduleOf, type ScheduleFilter } from "./queries.ts";
import type { Database, StoreTables } from "./tables.ts";

/** Number of schedules per read when many are removed. */
const PAGE = 500;

/** Runs inside a transaction of the adapter. */
export function putSchedule(tables: StoreTables, next: Schedule, before: string | null): boolean {
  const known = tables.schedule(next.tenant, next.key);
  if ((known?.revision ?? null) !== before) return false;
  tables.putSchedule(next);
  return true;
}

/** Runs inside a transaction of the adapter. */
export function removeSchedule(tables: StoreTables, tenant: string, key: string, before?: string): boolean {
  const known = tables.schedule(tenant, key);
  if (!known || (before !== undefined && known.revision !== before)) return false;
  tables.removeSchedule(tenant, key);
  return true;
}

/** Each schedule is removed by its own transaction, which checks the filter again: it may have been replaced since it was listed. */
export async function removeSchedules(database: Database, filter: ScheduleFilter): Promise<string[]> {
  const { tables } = database;
  const { tenant } = filter;
  const removed: string[] = [];
  for (let after = filter.after; ; ) {
    const page = await database.read(() => tables.schedules({ ...filter, after }, PAGE));
    for (const { key } of page) {
      const isRemoved = await database.write(() => {
        const now = tables.schedule(tenant, key);
        if (!now || !isScheduleOf(filter, now)) return false;
        tables.removeSchedule(tenant, key);
        return true;
      });
      if (isRemoved) removed.push(key);
    }
    after = page.at(-1)?.key;
    if (page.length < PAGE || after === undefined) return removed;
  }
}
