import { createId, stableStringify } from "../../base/index.ts";
import { AgentBusyError, InvalidInputError, NotFoundError } from "../../errors/index.ts";
import type { AgentRecord, Schedule } from "../../state/index.ts";
import type { Stores } from "../../stores/index.ts";
import type { RunNowOptions, ScheduleListOptions, ScheduleOptions, Schedules } from "../api/schedule-types.ts";
import { runKeyOf, scheduleKeyOf, scheduleListOptionsOf, timesOf } from "./schedule-options.ts";
import { timeSeriesOf } from "./schedule-times.ts";

/** The fields that a caller sets; two schedules with the same ones are the same. */
type ScheduleSettings = Omit<
  Schedule,
  | "tenant"
  | "key"
  | "createdAt"
  | "changedAt"
  | "revision"
  | "nextAt"
  | "pausedAt"
  | "asked"
  | "steered"
  | "counts"
  | "runs"
>;

/** How many requested runs of a schedule may wait. */
const MOST_ASKED = 100;

const nothingYet = { pausedAt: null, counts: { opened: 0, busy: 0, missed: 0, failed: 0 }, runs: [] } as const;

/** What a process needs to change schedules; it need not run agents. */
export interface StoredSchedulesOptions {
  readonly stores: Pick<Stores, "readAgent" | "schedule" | "schedules" | "putSchedule" | "removeSchedule">;
  readonly tenant: string;
  readonly clock: { now(): number };
  /** Throws once the process is shutting down. */
  assertOpen(): void;
  /** Called with the next time of a schedule that was stored. */
  onNext(at: number): void;
}

/** Stores and changes schedules, for any process of the deployment. */
export class StoredSchedules implements Omit<Schedules, "runNow"> {
  readonly #options: StoredSchedulesOptions;

  constructor(options: StoredSchedulesOptions) {
    this.#options = options;
  }

  /** Stores a schedule of a definition; one with the same settings is returned as it is. */
  async set(givenKey: string, definition: string, options: Omit<ScheduleOptions, "agent">): Promise<Schedule> {
    const of = "runtime.schedule()";
    const key = scheduleKeyOf(givenKey, of);
    this.#options.assertOpen();
    const { agentId = null, input, ifBusy } = options;
    if (agentId === null && (ifBusy === "steer" || ifBusy === "supersede")) {
      throw new InvalidInputError(
        `${of}: ifBusy is "${ifBusy}", but each run has a new agent, which is never busy; set agentId, or remove ifBusy`,
      );
    }
    const agent = agentId === null ? undefined : await this.#agentOf(agentId, definition, options.ownerId);
    if (
      agentId === null &&
      typeof input !== "string" &&
      input.some((part) => part.type === "file" && part.artifactId)
    ) {
      throw new InvalidInputError(`${of}: a new agent has no artifacts; set agentId, or give the file as a URL`);
    }
    const times = await timesOf(options, this.#options.clock.now(), of);
    return await this.put(key, {
      definition,
      agentId,
      ownerId: options.ownerId ?? agent?.ownerId ?? null,
      sessionId: options.sessionId ?? null,
      metadata: options.metadata ?? {},
      actorId: options.actorId ?? null,
      input,
      budget: options.budget === undefined ? null : JSON.parse(JSON.stringify(options.budget)),
      ...times,
      ifMissed: options.ifMissed ?? "once",
      ifBusy: options.ifBusy ?? "queue",
      setByTurnId: null,
    });
  }

  /** Stores checked settings under a key. Throws `InvalidInputError` if they leave no time. */
  async put(key: string, given: ScheduleSettings): Promise<Schedule> {
    const { stores, tenant, clock } = this.#options;
    for (;;) {
      const known = await stores.schedule(tenant, key);
      if (known && isSame(known, given)) return known;
      const now = clock.now();
      const settings = known ? withAnchorOf(known, given) : given;
      // A time that is due already, and not handled yet, is not lost by a change of other settings.
      const isKept = known?.nextAt !== undefined && known.nextAt !== null && hasSameTimes(known, settings);
      const nextAt = isKept ? known.nextAt : await this.#firstTime(settings, now);
      const before = known ?? { createdAt: now, ...nothingYet };
      const { createdAt, pausedAt, counts, runs } = before;
      const asked = known?.asked ? { asked: known.asked } : {};
      const kept = { createdAt, pausedAt, ...asked, counts, runs };
      const schedule = { tenant, key, ...settings, ...kept, changedAt: now, revision: createId(), nextAt };
      if (!(await stores.putSchedule(schedule, known?.revision ?? null))) continue;
      this.#options.onNext(nextAt);
      return await this.find(key);
    }
  }

  async remove(given: string): Promise<boolean> {
    const key = scheduleKeyOf(given, "runtime.unschedule()");
    this.#options.assertOpen();
    return await this.#options.stores.removeSchedule(this.#options.tenant, key);
  }

  async list(options?: ScheduleListOptions): Promise<Schedule[]> {
    const { stores, tenant } = this.#options;
    return await stores.schedules({ ...scheduleListOptionsOf(options), tenant });
  }

  async get(given: string): Promise<Schedule | undefined> {
    return await this.#options.stores.schedule(this.#options.tenant, scheduleKeyOf(given, "runtime.schedules.get()"));
  }

  async pause(given: string): Promise<Schedule> {
    const key = scheduleKeyOf(given, "runtime.schedules.pause()");
    return await this.#change(key, (schedule, now) => ({ pausedAt: schedule.pausedAt ?? now }));
  }

  async resume(given: string): Promise<Schedule> {
    const key = scheduleKeyOf(given, "runtime.schedules.resume()");
    const resumed = await this.#change(key, async (schedule, now) => {
      const { pausedAt, nextAt, times } = schedule;
      if (pausedAt === null || nextAt === null || times.kind === "at") return { pausedAt: null };
      // Also a time that is too late, after a clock was ahead. A time that has its turn opens no second one.
      return { pausedAt: null, nextAt: (await timeSeriesOf(schedule)).next(now) };
    });
    if (resumed.nextAt !== null) this.#options.onNext(resumed.nextAt);
    return resumed;
  }

  /**
   * Requests a run besides the times, which a process with the definition opens. With the key of an earlier request nothing changes.
   * Rejects with `NotFoundError` for an unknown schedule, and with `AgentBusyError` while 100 requested runs wait.
   */
  async ask(given: string, options: RunNowOptions = {}): Promise<Schedule> {
    const of = "runtime.schedules.runNow()";
    const key = scheduleKeyOf(given, of);
    const runKey = runKeyOf(options, of) ?? createId();
    const { stores, clock } = this.#options;
    this.#options.assertOpen();
    for (;;) {
      const schedule = await this.find(key);
      const { asked = [], runs } = schedule;
      if ([...asked, ...runs].some((run) => run.key === runKey)) return schedule;
      if (asked.length >= MOST_ASKED) {
        throw new AgentBusyError(
          `${asked.length} requested runs of schedule "${key}" wait for a process with the agent "${schedule.definition}"; start one`,
        );
      }
      const at = clock.now();
      const next = { ...schedule, asked: [...asked, { key: runKey, at }], revision: createId() };
      if (!(await stores.putSchedule(next, schedule.revision))) continue;
      this.#options.onNext(at);
      return next;
    }
  }

  /** Rejects with `NotFoundError`. */
  async find(key: string): Promise<Schedule> {
    const found = await this.#options.stores.schedule(this.#options.tenant, key);
    if (found) return found;
    throw new NotFoundError(`there is no schedule "${key}"`);
  }

  async #change(
    key: string,
    change: (schedule: Schedule, now: number) => Partial<Schedule> | Promise<Partial<Schedule>>,
  ): Promise<Schedule> {
    const { stores, clock } = this.#options;
    this.#options.assertOpen();
    for (;;) {
      const schedule = await this.find(key);
      const now = clock.now();
      const next = { ...schedule, ...(await change(schedule, now)), changedAt: now, revision: createId() };
      if (next.pausedAt === schedule.pausedAt && next.nextAt === schedule.nextAt) return schedule;
      if (await stores.putSchedule(next, schedule.revision)) return next;
    }
  }

  /** An existing agent must be able to run the schedule. Throws `InvalidInputError`. */
  async #agentOf(
    agentId: string,
    definition: string,
    givenOwner: string | undefined,
  ): Promise<AgentRecord | undefined> {
    const { stores, tenant } = this.#options;
    const record = await stores.readAgent({ tenant, agentId });
    if (!record) return undefined;
    const { ownerId } = record;
    if (record.definition.name !== definition) {
      throw new InvalidInputError(
        `runtime.schedule(): agent "${agentId}" exists with definition "${record.definition.name}", not "${definition}"`,
      );
    }
    if (givenOwner === undefined || givenOwner === ownerId) return record;
    throw new InvalidInputError(
      `runtime.schedule(): agent "${agentId}" exists with ${ownerId === null ? "no owner" : `owner "${ownerId}"`}, not "${givenOwner}"; remove ownerId`,
    );
  }

  async #firstTime(settings: ScheduleSettings, now: number): Promise<number> {
    const { times, endAt } = settings;
    const first = (await timeSeriesOf(settings)).next(now);
    if (first !== null) return first;
    const what = times.kind === "at" ? `at is ${isoOf(times.at)}` : `endAt is ${isoOf(endAt ?? now)}`;
    throw new InvalidInputError(`no time is left: ${what}, and it is ${isoOf(now)} now; give a later time`);
  }
}

function isoOf(at: number): string {
  return new Date(at).toISOString();
}

/** The settings as one text. The anchor of `every` is the time of the call, unless `startAt` sets it. */
function textOfSettings(settings: ScheduleSettings): string {
  const { definition, agentId, ownerId, sessionId, metadata, actorId, input, budget } = settings;
  const { times, startAt, endAt, ifMissed, ifBusy, setByTurnId } = settings;
  const when = times.kind === "every" ? { kind: times.kind, everyMs: times.everyMs } : times;
  const who = [definition, agentId, ownerId, sessionId, metadata, actorId, input, budget];
  return stableStringify([...who, when, startAt, endAt, ifMissed, ifBusy, setByTurnId]);
}

function isSame(known: Schedule, given: ScheduleSettings): boolean {
  return textOfSettings(known) === textOfSettings(given);
}

function hasSameTimes(known: ScheduleSettings, given: ScheduleSettings): boolean {
  const textOf = ({ times, startAt, endAt }: ScheduleSettings): string => stableStringify([times, startAt, endAt]);
  return textOf(known) === textOf(given);
}

/** Changing other settings does not move the times of `every`. */
function withAnchorOf({ times }: Schedule, given: ScheduleSettings): ScheduleSettings {
  if (times.kind !== "every" || given.times.kind !== "every" || times.everyMs !== given.times.everyMs) return given;
  return given.startAt === null ? { ...given, times } : given;
}
