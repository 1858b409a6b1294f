import type { AgentDefinition } from "../../agents/index.ts";
import type { Budget } from "../../budget/index.ts";
import type { Content, JsonObject, Schedule, ScheduledRun } from "../../state/index.ts";
import type { ScheduleFilter } from "../../stores/index.ts";

/** When a schedule runs; exactly one of `at`, `every` and `cron` is needed. */
export interface ScheduleTimesOptions {
  /**
   * Once, at this time: a date, an ISO text, or milliseconds since the epoch. A text without an offset is a time in `timezone`. Default:
   * none.
   */
  readonly at?: Date | string | number | undefined;
  /**
   * At this distance, from 1 second to 10 years: `"90s"`, `"15m"`, `"1h30m"`, `"2d"`, `"1w"` or whole milliseconds. A day has 24 hours. The
   * times are fixed multiples after the call or after `startAt`, so late runs move no later time. Default: none.
   */
  readonly every?: string | number | undefined;
  /**
   * At the times of a cron pattern: five fields, six with the second in front, or a name such as `@daily`. In `timezone`: a fixed time that
   * does not exist on the day of a clock change runs when the gap ends, and one that exists twice runs once. Default: none.
   */
  readonly cron?: string | undefined;
  /** A name of the IANA time zone database, for `cron` and for texts without an offset. Default `UTC`. */
  readonly timezone?: string | undefined;
  /** No run before this time, in the forms of `at`; with `every` the first run is at this time. Default: from now on. */
  readonly startAt?: Date | string | number | undefined;
  /** No run from this time on, in the forms of `at`. Default: without end. */
  readonly endAt?: Date | string | number | undefined;
}

/** The options of `runtime.schedule()`. */
export interface ScheduleOptions extends ScheduleTimesOptions {
  /** A definition of this runtime, or its name. */
  readonly agent: AgentDefinition | string;
  /** The input of each turn: a text, or a list of content parts. */
  readonly input: Content;
  /**
   * The agent of every run, which is created if it does not exist: its conversation continues from run to run. Default: a new agent for each
   * run, with the id `KEY-20270301T090000Z`.
   */
  readonly agentId?: string | undefined;
  /** Owner of the schedule and of agents that it creates. Default: the owner of the existing agent `agentId`, else none. */
  readonly ownerId?: string | undefined;
  /** Session of agents that it creates. Default: none. */
  readonly sessionId?: string | undefined;
  /** Metadata of agents that it creates. Default: empty. */
  readonly metadata?: JsonObject | undefined;
  /** The actor of each turn. Credentials are never stored: `resolveAuth` gives them when a turn runs. Default: none. */
  readonly actorId?: string | undefined;
  /** Limits of each turn, without `deadline`. Default: those of the definition. */
  readonly budget?: Omit<Budget, "deadline"> | undefined;
  /**
   * What happens with times at which no process ran, after a minute: `skip` runs none of them, `once` one turn for all of them, `all` one
   * turn for each of the newest 100. Default `once`.
   */
  readonly ifMissed?: Schedule["ifMissed"] | undefined;
  /**
   * What happens if the agent `agentId` has an open turn: `queue` runs after it, `skip` leaves the time out, `steer` gives that turn the
   * input, which its next model call sees, and `supersede` ends that turn and runs. `steer` and `supersede` need `agentId`. Default `queue`.
   */
  readonly ifBusy?: Schedule["ifBusy"] | undefined;
}

/** Options of `runtime.schedules.runNow()`. */
export interface RunNowOptions {
  /**
   * An idempotency key of 1 to 255 visible ASCII characters: the schedule has one run with this key, whichever process opens it, and
   * however often. Default: each call is another run.
   */
  readonly key?: string | undefined;
}

/** Filter and limit for a list of schedules. */
export type ScheduleListOptions = Omit<ScheduleFilter, "tenant">;

/** The stored schedules of a runtime's tenant, of all processes. */
export interface Schedules {
  /** Ordered by key; at most 100, or `limit`. Continue with `after: last.key`. */
  list(options?: ScheduleListOptions): Promise<Schedule[]>;
  /** `undefined` if there is no schedule with that key. */
  get(key: string): Promise<Schedule | undefined>;
  /** Opens no more turns until `resume()`. Open turns continue. Rejects with `NotFoundError` for an unknown key. */
  pause(key: string): Promise<Schedule>;
  /**
   * Continues with the next time after now: times during the pause are not missed. Only the single time of `at` is, and runs unless
   * `ifMissed` is `skip`. Rejects with `NotFoundError` for an unknown key.
   */
  resume(key: string): Promise<Schedule>;
  /**
   * Opens one turn now, besides the scheduled times, also while the schedule is paused or has ended. Rejects with `NotFoundError` for an
   * unknown schedule or a definition that this runtime does not have.
   */
  runNow(key: string, options?: RunNowOptions): Promise<ScheduledRun>;
}
