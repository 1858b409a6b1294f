import type { Schedule } from "../../state/index.ts";
import type { DeletionDependencies } from "./delete-tree.ts";

const PAGE = 200;

export interface PruneSchedulesOptions {
  /** Schedules that ended before this time are removed, in milliseconds since the epoch. */
  readonly endedBefore: number;
  /** Continues after this key. Default: the first one. */
  readonly after?: string | undefined;
  /** How many schedules to look at. Default: all. */
  readonly limit?: number | undefined;
  /** Only lists them. Default false. */
  readonly isDryRun?: boolean | undefined;
  /** Called with each schedule that is removed or, in a dry run, would be. */
  readonly onSchedule?: ((schedule: Schedule) => void) | undefined;
}

/**
 * Removes schedules that have no time left and have not run or been changed since a time. Resolves with the key after which the next call
 * continues; `undefined` at the end of the list. One that is set again meanwhile stays.
 */
export async function pruneSchedules(
  { stores, tenant }: Pick<DeletionDependencies, "stores" | "tenant">,
  options: PruneSchedulesOptions,
): Promise<string | undefined> {
  const { endedBefore, limit = Number.POSITIVE_INFINITY, isDryRun = false, onSchedule } = options;
  let looked = 0;
  for (let after = options.after; ; ) {
    const wanted = Math.min(PAGE, limit - looked);
    const page = await stores.schedules({ tenant, after, limit: wanted });
    for (const schedule of page) {
      const { key, revision } = schedule;
      if (!isEnded(schedule, endedBefore)) continue;
      if (isDryRun || (await stores.removeSchedule(tenant, key, revision))) onSchedule?.(schedule);
    }
    looked += page.length;
    after = page.at(-1)?.key;
    if (page.length < wanted || after === undefined) return undefined;
    if (looked >= limit) return after;
  }
}

function isEnded({ nextAt, asked = [], changedAt, runs }: Schedule, before: number): boolean {
  if (nextAt !== null || asked.length > 0) return false;
  return Math.max(changedAt, ...runs.map(({ handledAt }) => handledAt)) < before;
}
