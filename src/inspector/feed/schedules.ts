import type { Schedule } from "../../state/index.ts";
import type { ScheduleRow } from "./answers.ts";
import type { FeedSource } from "./source.ts";

/** Maximum number of schedules that are shown, by key. */
const MOST_SCHEDULES = 200;
/** Newest runs of each. */
const RUNS_SHOWN = 5;

/** The schedules of a source without their inputs, those that run next first. */
export async function scheduleRows({ stores, tenant }: FeedSource): Promise<ScheduleRow[]> {
  const schedules = await stores.schedules({ tenant, limit: MOST_SCHEDULES });
  const last = Number.POSITIVE_INFINITY;
  return schedules
    .map((schedule): ScheduleRow => {
      const { key, definition, agentId, nextAt, pausedAt, counts, runs } = schedule;
      const shown = runs.slice(-RUNS_SHOWN).map(({ at, outcome, agentId: runId }) => ({ at, outcome, runId }));
      const times = timesText(schedule);
      return { key, name: definition, agentId, times, nextAt, isPaused: pausedAt !== null, counts, runs: shown };
    })
    .toSorted((one, other) => (one.nextAt ?? last) - (other.nextAt ?? last));
}

function timesText({ times }: Schedule): string {
  if (times.kind === "cron") return `${times.cron} (${times.timezone})`;
  return times.kind === "every" ? `every ${times.everyMs / 1_000} s` : "once";
}
