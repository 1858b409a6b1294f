import { createId, faultPoint } from "../../base/index.ts";
import { AlreadyOwnedError } from "../../errors/index.ts";
import { type Schedule, scheduleDueAt, type ScheduledRun, type Timer } from "../../state/index.ts";
import type { ScheduleCursor } from "../../stores/index.ts";
import type { AlarmSource } from "../core/alarms.ts";
import type { RuntimeCore } from "../core/runtime-core.ts";
import { type OpenedRun, openRun, withSteered } from "./open-scheduled-turn.ts";
import { dueRuns, type DueRuns, MISSED_AFTER_MS, timeSeriesOf } from "./schedule-times.ts";

/** Number of schedules per query, and how many of them are handled at a time. */
const PAGE = 100;
const AT_A_TIME = 10;
/** How many runs a schedule keeps. */
export const RUNS_KEPT = 20;

/** A schedule whose time has come, but whose definition this process does not have. */
export interface OverdueSchedule {
  readonly key: string;
  readonly definition: string;
  /** Since when it is due, in milliseconds since the epoch. */
  readonly dueAt: number;
}

/**
 * Opens the turns of schedules that are due. Any process may do so that has the definition, as for timers.
 *
 * Invariants
 * 1. A time opens at most one turn, whichever processes handle it, and however often: the turn has the key of the schedule and the time.
 * 2. A schedule moves to its next time only after the turns of all its earlier times were opened or left out. A process that dies before
 *    leaves them to another one.
 * 3. A schedule moves by compare-and-set, so of several processes one moves it.
 */
export class DueSchedules implements AlarmSource {
  readonly what = "schedules";
  readonly #core: RuntimeCore;
  /** By key. */
  #overdue = new Map<string, OverdueSchedule>();
  readonly #reported = new Set<string>();

  constructor(core: RuntimeCore) {
    this.#core = core;
  }

  /** The schedules that wait for a process with their definition for more than a minute. */
  get overdue(): readonly OverdueSchedule[] {
    return [...this.#overdue.values()];
  }

  async nextAt(): Promise<number | undefined> {
    const { stores, tenant, clock } = this.#core;
    // Those that are due already, and were left to other processes or failed, are read again within 5 s.
    return await stores.nextScheduleAt(tenant, clock.now());
  }

  async fireDue(report: (error: unknown) => void): Promise<readonly Timer[]> {
    const { stores, tenant, clock } = this.#core;
    const overdue = new Map<string, OverdueSchedule>();
    for (let after: ScheduleCursor | undefined; this.#core.isOpen; ) {
      const page = await stores.dueSchedules(tenant, clock.now(), PAGE, after);
      const own = page.filter((schedule) => this.#mayOpen(schedule, overdue));
      await this.#handleAll(own, report);
      const last = page.at(-1);
      // A page may lack corrupt schedules, so only an empty one is the last.
      if (!last) break;
      after = { dueAt: scheduleDueAt(last) ?? 0, key: last.key };
    }
    this.#overdue = overdue;
    this.#warn();
    return [];
  }

  /** In an order of this process's own: of several processes that find the same schedules, each then finds many of them handled. */
  async #handleAll(schedules: readonly Schedule[], report: (error: unknown) => void): Promise<void> {
    const { random } = this.#core;
    const order = schedules.map((schedule) => ({ schedule, place: random() })).sort((a, b) => a.place - b.place);
    for (let at = 0; at < order.length; at += AT_A_TIME) {
      const group = order.slice(at, at + AT_A_TIME).map(({ schedule }) => this.#handle(schedule.key));
      for (const outcome of await Promise.allSettled(group)) {
        // Another process starts the agent now, or died while it did; the next look tries again.
        if (outcome.status === "rejected" && !(outcome.reason instanceof AlreadyOwnedError)) report(outcome.reason);
      }
    }
  }

  #mayOpen(schedule: Schedule, overdue: Map<string, OverdueSchedule>): boolean {
    const { definitions, part, live, clock } = this.#core;
    const { key, agentId, definition } = schedule;
    if (part.recovers === "own" && (agentId === null || !live.standing(this.#core.keyOf(agentId)))) return false;
    if (definitions.has(definition)) return true;
    const dueAt = scheduleDueAt(schedule) ?? 0;
    if (dueAt < clock.now() - MISSED_AFTER_MS) overdue.set(key, { key, definition, dueAt });
    return false;
  }

  /** Opens the turns of requested runs and of all times up to now, then moves the schedule to its next time. */
  async #handle(key: string): Promise<void> {
    const { stores, tenant, clock } = this.#core;
    const schedule = await stores.schedule(tenant, key);
    const now = clock.now();
    if (!schedule) return;
    const due = await dueRunsOf(schedule, now);
    const asked = schedule.asked?.filter(({ at }) => at <= now) ?? [];
    if (!due && asked.length === 0) return;
    const opened: OpenedRun[] = [];
    let current = schedule;
    for (const run of [...asked, ...(due?.runs.map((at) => ({ at })) ?? [])]) {
      const one = await openRun(this.#core, current, run);
      opened.push(one);
      current = withSteered(current, one);
    }
    await recordRuns(this.#core, schedule, { opened, due });
  }

  #warn(): void {
    for (const { key, definition, dueAt } of this.#overdue.values()) {
      if (this.#reported.has(key)) continue;
      this.#reported.add(key);
      process.emitWarning(
        `schedule "${key}" is due since ${new Date(dueAt).toISOString()}, and no process has opened its turn: this runtime does not have the definition "${definition}"; add it to createRuntime({ agents: [...] }), or run a process that has it`,
        { code: "TROUPE_UNKNOWN_DEFINITION" },
      );
    }
  }
}

/** `undefined` if no time is due. */
async function dueRunsOf(schedule: Schedule, now: number): Promise<DueRuns | undefined> {
  const { nextAt, ifMissed, pausedAt } = schedule;
  if (pausedAt !== null || nextAt === null || nextAt > now) return undefined;
  return dueRuns(await timeSeriesOf(schedule), { nextAt, ifMissed }, now);
}

/**
 * Stores what came of some runs, which are then requested no more. If another process has changed the schedule meanwhile, only turns that
 * this process opened itself and that are not recorded yet are added. `due`: moves the schedule; without it, only the runs are added.
 */
export async function recordRuns(
  { stores, tenant, clock }: Pick<RuntimeCore, "stores" | "tenant" | "clock">,
  seen: Schedule,
  { opened, due }: { readonly opened: readonly OpenedRun[]; readonly due?: DueRuns | undefined },
): Promise<void> {
  const all = opened.map(({ run }) => run);
  const own = opened.flatMap(({ run, isNew }) => (isNew ? run : []));
  const handled = new Set(all.map(({ key }) => key));
  for (let row: Schedule | undefined = seen; row; row = await stores.schedule(tenant, seen.key)) {
    const isFirst = row.revision === seen.revision;
    const runs = isFirst && due ? [...missedRun(due, clock.now()), ...all] : isFirst ? all : own;
    const changed = withRuns(row, runs, isFirst ? (due?.missed?.count ?? 0) : 0);
    const { asked = [], ...others } = opened.reduce(withSteered, changed);
    const left = asked.filter(({ key }) => !handled.has(key));
    if (changed === row && left.length === asked.length && !(isFirst && due)) return;
    const moved = isFirst && due ? { nextAt: due.nextAt } : {};
    const next = { ...others, ...(left.length === 0 ? {} : { asked: left }), ...moved, revision: createId() };
    if (!(await stores.putSchedule(next, row.revision))) continue;
    faultPoint("schedule.moved");
    return;
  }
}

/** One run stands for all times that were left out at once. */
function missedRun({ missed }: DueRuns, handledAt: number): ScheduledRun[] {
  if (!missed) return [];
  const run = { at: missed.last, handledAt, outcome: "missed", agentId: null, turnId: null } as const;
  return [missed.count === 1 ? run : { ...run, message: `the newest of ${missed.count} missed times` }];
}

/** A run is recorded once; an opened turn replaces what another process recorded about it. */
function withRuns(schedule: Schedule, runs: readonly ScheduledRun[], missed: number): Schedule {
  const counts = { ...schedule.counts, missed: schedule.counts.missed + missed };
  const kept = [...schedule.runs];
  let isChanged = missed > 0;
  for (const run of runs) {
    const at = kept.findIndex((one) => one.key === run.key && (run.key !== undefined || one.at === run.at));
    const known = kept[at];
    if (known && (known.outcome === "opened" || run.outcome !== "opened")) continue;
    if (known) counts[known.outcome] = Math.max(0, counts[known.outcome] - 1);
    kept.splice(known ? at : kept.length, known ? 1 : 0, run);
    if (run.outcome !== "missed") counts[run.outcome] += 1;
    isChanged = true;
  }
  if (!isChanged) return schedule;
  return { ...schedule, counts, runs: kept.sort((one, other) => one.at - other.at).slice(-RUNS_KEPT) };
}
