import { z } from "zod";
import type { DeepReadonly } from "../../base/index.ts";
import {
  contentSchema,
  jsonObjectSchema,
  type Schedule,
  scheduledRunSchema,
  type ScheduledRun,
  scheduleSchema,
} from "../../state/index.ts";
import { shownMetadata } from "../core/creation-mark.ts";
import { budgetSchema, milliseconds } from "./agent-json.ts";

const timeText = z.union([z.string().min(1).max(200), z.number()]);
const { ifMissed, ifBusy } = scheduleSchema.shape;

const scheduleBudgetSchema = budgetSchema.omit({ deadline: true }).meta({
  id: "ScheduleBudget",
  description: "Limits of each turn of a schedule. Absent means unlimited; 0 allows nothing.",
});

export const newScheduleSchema = z
  .strictObject({
    definition: z.string(),
    input: contentSchema.meta({ description: "The input of each turn." }),
    key: z
      .string()
      .min(1)
      .max(255)
      .optional()
      .meta({ description: "The caller's name of the schedule; a schedule with the same name is replaced." }),
    at: timeText.optional().meta({ description: "Once: ISO 8601, or milliseconds since the epoch." }),
    every: timeText.optional().meta({ description: 'At a distance: `"15m"`, `"1h30m"`, `"2d"`, or milliseconds.' }),
    cron: z.string().min(1).max(200).optional().meta({ description: "At the times of a cron pattern." }),
    timezone: z.string().min(1).max(100).optional().meta({ description: "An IANA name. Default `UTC`." }),
    startAt: timeText.optional().meta({ description: "No run before this time." }),
    endAt: timeText.optional().meta({ description: "No run from this time on." }),
    agentId: z
      .string()
      .optional()
      .meta({ description: "An agent of the caller, for every run. Default: a new agent for each run." }),
    sessionId: z.string().optional().meta({ description: "Groups the agents that it creates." }),
    metadata: jsonObjectSchema.optional().meta({ description: "Metadata of the agents that it creates." }),
    budget: scheduleBudgetSchema.optional(),
    ifMissed: ifMissed.optional().meta({ description: "Default `once`." }),
    ifBusy: ifBusy.optional().meta({ description: "Default `queue`." }),
  })
  .meta({ id: "NewSchedule", description: "A schedule to create. Exactly one of `at`, `every` and `cron` is needed." });

export const scheduledRunJsonSchema = z
  .object({ ...scheduledRunSchema.omit({ key: true }).shape })
  .meta({ id: "ScheduledRun", description: "What came of one time of a schedule." });
export type ScheduledRunJson = DeepReadonly<z.infer<typeof scheduledRunJsonSchema>>;

const shape = scheduleSchema.shape;

export const scheduleJsonSchema = z
  .object({
    scheduleId: z.string(),
    definition: z.string().meta({ description: "Name of the definition." }),
    agentId: shape.agentId.meta({ description: "The agent of every run, or null if each run has a new agent." }),
    sessionId: shape.sessionId,
    metadata: jsonObjectSchema,
    input: contentSchema,
    budget: jsonObjectSchema
      .nullable()
      .meta({ description: "Limits of each turn, or null if they are those of the definition." }),
    times: shape.times.meta({ description: "When it runs." }),
    startAt: shape.startAt,
    endAt: shape.endAt,
    ifMissed,
    ifBusy,
    setByTurnId: shape.setByTurnId.meta({
      description: "The turn whose tool set it; null if a client or a program did.",
    }),
    createdAt: milliseconds,
    changedAt: milliseconds,
    nextAt: shape.nextAt.meta({ description: "The next time; null when none is left." }),
    pausedAt: shape.pausedAt.meta({ description: "Since when it is paused; null while it is not." }),
    counts: shape.counts.meta({ description: "How many times had each outcome." }),
    runs: z.array(scheduledRunJsonSchema).meta({ description: "The newest 20 runs, oldest first." }),
  })
  .meta({ id: "Schedule", description: "A schedule, which opens turns at its times." });
export type ScheduleJson = DeepReadonly<z.infer<typeof scheduleJsonSchema>>;

export function scheduleJson(schedule: Schedule): ScheduleJson {
  const { key, definition, agentId, sessionId, metadata, input, budget, times, startAt, endAt } = schedule;
  const {
    ifMissed: missed,
    ifBusy: busy,
    setByTurnId,
    createdAt,
    changedAt,
    nextAt,
    pausedAt,
    counts,
    runs,
  } = schedule;
  return {
    scheduleId: key,
    definition,
    agentId,
    sessionId,
    metadata: shownMetadata(metadata),
    input,
    budget,
    times,
    startAt,
    endAt,
    ifMissed: missed,
    ifBusy: busy,
    setByTurnId,
    createdAt,
    changedAt,
    nextAt,
    pausedAt,
    counts,
    runs: runs.map(scheduledRunJson),
  };
}

export function scheduledRunJson({ key: _key, ...run }: ScheduledRun): ScheduledRunJson {
  return run;
}
