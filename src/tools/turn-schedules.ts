import type { Schedule } from "../state/index.ts";

/** A later turn of the agent itself. Exactly one of `in`, `at`, `every` and `cron` is needed. */
export interface ScheduleTurnInput {
  /** The input of the later turn. */
  readonly input: string;
  /** Once, this long from now: `"20m"`, `"1h30m"`, `"2d"`, or whole milliseconds. */
  readonly in?: string | number | undefined;
  /** Once, at this time: a date, an ISO text, or milliseconds since the epoch. A text without an offset is a time in `timezone`. */
  readonly at?: Date | string | number | undefined;
  /** At this distance, in the forms of `in`. */
  readonly every?: string | number | undefined;
  /** At the times of a cron pattern. */
  readonly cron?: string | undefined;
  /** For `cron` and for texts without an offset. Default `UTC`. */
  readonly timezone?: string | undefined;
  /** No turn before this time, in the forms of `at`. Default: from now on. */
  readonly startAt?: Date | string | number | undefined;
  /** No turn from this time on, in the forms of `at`. Default: without end. */
  readonly endAt?: Date | string | number | undefined;
}

/** Limits of what a tool may schedule. */
export interface ScheduleTurnLimits {
  /** Maximum number of schedules that tools of the agent have set and that have a time left. Default: unlimited. */
  readonly maxOpen?: number | undefined;
  /** Minimum time until a single turn and between two repeated ones, in milliseconds. Default: 0. */
  readonly minDistanceMs?: number | undefined;
}

/** The later turns of the agent itself, as its tools see them. */
export interface TurnSchedules {
  /**
   * Schedules a turn, once per call: code that runs again gets the same schedule. Rejects with `InvalidInputError` for invalid times and
   * beyond the limits, with `PolicyRefusedError` for a subagent and in a fork.
   */
  add(input: ScheduleTurnInput, limits?: ScheduleTurnLimits): Promise<Schedule>;
  /** The schedules that tools of this agent have set and that have a time left, by key. */
  list(): Promise<Schedule[]>;
  /** Removes one of them. Returns false for any other key. */
  cancel(key: string): Promise<boolean>;
}

/** The call that uses `TurnSchedules`. */
export interface ScheduleCaller {
  readonly agentId: string;
  readonly parentAgentId: string | null;
  readonly isFork: boolean;
  /** Name of the agent's definition. */
  readonly definition: string;
  readonly ownerId: string | null;
  readonly sessionId: string | null;
  readonly actorId: string | null;
  readonly turnId: string;
  readonly callId: string;
}
