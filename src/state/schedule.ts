import { z } from "zod";
import {
  countSchema,
  type DeepReadonly,
  integerOrNullSchema,
  integerSchema,
  optionalTextSchema,
  positiveSchema,
  textOrNullSchema,
  textSchema,
} from "../base/index.ts";
import { jsonObjectSchema } from "./json.ts";
import { contentSchema } from "./message.ts";

/** When a schedule runs: once, at a fixed distance from a moment, or by a cron pattern in a time zone. */
export const scheduleTimesSchema = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("at"), at: integerSchema }),
  /** At `from` plus any positive multiple of `everyMs`, so that late runs move no later time. */
  z.object({ kind: z.literal("every"), everyMs: positiveSchema, from: integerSchema }),
  z.object({ kind: z.literal("cron"), cron: textSchema, timezone: textSchema }),
]);
export type ScheduleTimes = DeepReadonly<z.infer<typeof scheduleTimesSchema>>;

/**
 * What became of one time of a schedule. `opened`: its turn was opened. `busy`: left out, because the agent had an open turn. `missed`: left
 * out, because no process ran at that time. `failed`: no turn could be opened.
 */
export const scheduledRunSchema = z.object({
  /** The scheduled time, in milliseconds since the epoch; of a run besides the times, when it was requested. */
  at: integerSchema,
  /** Identifies a run besides the times. */
  key: optionalTextSchema,
  /** When a process handled it. */
  handledAt: integerSchema,
  outcome: z.enum(["opened", "busy", "missed", "failed"]),
  /** The agent, and the turn that was opened or, with `steer`, was open; `null` without a turn. */
  agentId: textOrNullSchema,
  turnId: textOrNullSchema,
  /** Why it failed. */
  message: optionalTextSchema,
});
export type ScheduledRun = DeepReadonly<z.infer<typeof scheduledRunSchema>>;

/** A stored schedule. Times are in milliseconds since the epoch. */
export const scheduleSchema = z.object({
  tenant: textSchema,
  key: textSchema,
  /** The name of the definition. */
  definition: textSchema,
  /** The agent of every run; `null`: each run has a new agent. */
  agentId: textOrNullSchema,
  /** The owner and the session of agents that the schedule creates. */
  ownerId: textOrNullSchema,
  sessionId: textOrNullSchema,
  metadata: jsonObjectSchema,
  /** The actor of its turns. */
  actorId: textOrNullSchema,
  input: contentSchema,
  /** The budget of each turn as the caller wrote it. */
  budget: jsonObjectSchema.nullable(),
  times: scheduleTimesSchema,
  /** No run before, and none from then on. */
  startAt: integerOrNullSchema,
  endAt: integerOrNullSchema,
  ifMissed: z.enum(["skip", "once", "all"]),
  ifBusy: z.enum(["queue", "skip", "steer", "supersede"]),
  /** The turn whose tool call made the schedule; `null` if code made it. */
  setByTurnId: textOrNullSchema,
  createdAt: integerSchema,
  /** The last change by a caller; runs do not count. */
  changedAt: integerSchema,
  /** Changes with each write. */
  revision: textSchema,
  /** The next time; `null` when none is left. */
  nextAt: integerOrNullSchema,
  /** Since when it is paused; `null` while it is not. */
  pausedAt: integerOrNullSchema,
  /** Runs besides the times that no process has opened yet, each with its idempotency key. `undefined` if there are none. */
  asked: z.array(z.object({ key: textSchema, at: integerSchema })).optional(),
  /** The turn that was given inputs last while it was open, and how many. `undefined` unless the schedule has steered one. */
  steered: z.object({ turnId: textSchema, count: countSchema }).optional(),
  /** How many times had each outcome. */
  counts: z.object({ opened: countSchema, busy: countSchema, missed: countSchema, failed: countSchema }),
  /** The newest runs, oldest first; at most 20. */
  runs: z.array(scheduledRunSchema),
});
export type Schedule = DeepReadonly<z.infer<typeof scheduleSchema>>;

/** When a process has to handle the schedule; `null` if nothing is left to do, or if it is paused and no run was requested. */
export function scheduleDueAt({ nextAt, pausedAt, asked = [] }: Pick<Schedule, "nextAt" | "pausedAt" | "asked">) {
  const times = [...asked.map(({ at }) => at), ...(pausedAt === null && nextAt !== null ? [nextAt] : [])];
  return times.length === 0 ? null : Math.min(...times);
}
