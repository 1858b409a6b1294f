import { createId } from "../../base/index.ts";
import { AlreadyOwnedError, UnsupportedError } from "../../errors/index.ts";
import type { Schedule, ScheduledRun } from "../../state/index.ts";
import type { RunNowOptions, ScheduleOptions } from "../api/schedule-types.ts";
import { knownDefinition } from "../core/root-agents.ts";
import type { RuntimeCore } from "../core/runtime-core.ts";
import { recordRuns, RUNS_KEPT } from "./due-schedules.ts";
import { type OpenedRun, openRun, type RunTime } from "./open-scheduled-turn.ts";
import { runKeyOf, scheduleKeyOf, scheduleOptionsOf } from "./schedule-options.ts";
import type { StoredSchedules } from "./stored-schedules.ts";

const MOST_STARTS = 10;
const START_PAUSE_MS = 20;

interface ScheduleServices {
  readonly core: RuntimeCore;
  readonly schedules: StoredSchedules;
}

/** `runtime.schedule()`. */
export async function setSchedule(
  { core, schedules }: ScheduleServices,
  key: string,
  given: ScheduleOptions,
): Promise<Schedule> {
  const options = scheduleOptionsOf(given);
  core.assertOpen();
  const { name } = knownDefinition(core, options.agent, "runtime.schedule()");
  if (options.agentId !== undefined) assertSaved(core, options.agentId);
  return await schedules.set(key, name, options);
}

/** `runtime.schedules.runNow()`. */
export async function runScheduleNow(
  { core, schedules }: ScheduleServices,
  given: string,
  options?: RunNowOptions,
): Promise<ScheduledRun> {
  const of = "runtime.schedules.runNow()";
  const scheduleKey = scheduleKeyOf(given, of);
  const key = runKeyOf(options, of) ?? createId();
  core.assertOpen();
  const schedule = await schedules.find(scheduleKey);
  const known = schedule.runs.find((run) => run.key === key && run.outcome === "opened");
  if (known) return known;
  knownDefinition(core, schedule.definition, of);
  const opened = await openedRun(core, schedule, { at: core.clock.now(), key });
  // The record of a run that was opened long ago has made room for newer ones.
  const isOld = !opened.isNew && opened.run.outcome === "opened" && schedule.runs.length >= RUNS_KEPT;
  if (!isOld) await recordRuns(core, schedule, { opened: [opened] });
  return opened.run;
}

/** Waits if another process is starting the agent, for the same run or another one. */
async function openedRun(core: RuntimeCore, schedule: Schedule, run: RunTime): Promise<OpenedRun> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await openRun(core, schedule, run);
    } catch (error) {
      if (!(error instanceof AlreadyOwnedError) || attempt >= MOST_STARTS) throw error;
    }
    await core.clock.sleep(START_PAUSE_MS * attempt);
  }
}

/** Throws `UnsupportedError` for an agent whose turns are only in this process. */
export function assertSaved({ stores, tenant }: Pick<RuntimeCore, "stores" | "tenant">, agentId: string): void {
  if (!stores.isUnsaved({ tenant, agentId })) return;
  throw new UnsupportedError(
    `agent "${agentId}" is kept in this process (autoSave: false), so no other process could run its schedules; use an agent that is saved with each commit`,
  );
}
