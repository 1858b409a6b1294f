import { z } from "zod";
import { flagRule, optionsOf, wholeNumberRule } from "../base/index.ts";
import type { Schedule } from "../state/index.ts";
import { defineTool } from "./define-tool.ts";
import type { RunContext } from "./run-context.ts";
import type { Tool } from "./tool.ts";

/** Options of `scheduleTurn()`. */
export interface ScheduleTurnOptions {
  /** Maximum number of schedules that the agent has set and that have a time left. Default 10. */
  readonly maxOpen?: number | undefined;
  /** Minimum time until a single turn and between two repeated ones, in milliseconds. Default 60,000. */
  readonly minDistanceMs?: number | undefined;
  /** Whether a person approves each schedule. Default false. */
  readonly needsApproval?: boolean | undefined;
}

const time = z.string().min(1).max(100).optional();
const scheduleSchema = z.strictObject({
  message: z
    .string()
    .min(1)
    .max(10_000)
    .describe("What you will be asked then. It must be clear on its own: name the task and what to check."),
  in: time.describe('Once, after this time: "20m", "1h30m", "2d".'),
  at: time.describe('Once, at this time: "2027-03-01T09:00:00Z", or without Z as a time in timezone.'),
  every: time.describe('Again and again at this distance: "15m", "1d".'),
  cron: time.describe('Again and again at the times of a cron pattern with five fields: "0 9 * * MON-FRI".'),
  timezone: time.describe('For cron, and for times without an offset: "Europe/Berlin". Default UTC.'),
  until: time.describe("No turn from this time on, in the form of at. Only with every or cron."),
});

/**
 * Three tools with which an agent schedules later turns of itself: `schedule_turn`, `list_scheduled_turns` and `cancel_scheduled_turn`. The
 * later turns continue the agent's conversation, in any process that has its definition. Only for root agents that are saved with each
 * commit. Add them with `tools: [...scheduleTurn()]`. Throws `InvalidInputError` for invalid options.
 */
export function scheduleTurn(options?: ScheduleTurnOptions): readonly Tool[] {
  const {
    maxOpen = 10,
    minDistanceMs = 60_000,
    needsApproval = false,
  } = optionsOf<ScheduleTurnOptions>(options, "scheduleTurn()", {
    rules: { maxOpen: wholeNumberRule(1), minDistanceMs: wholeNumberRule(0), needsApproval: flagRule },
    instead: { max: "maxOpen", approval: "needsApproval", minIntervalMs: "minDistanceMs" },
  });
  const schedule = defineTool({
    name: "schedule_turn",
    description:
      "Schedules a later turn of yours: you get the message then, in this conversation. Set exactly one of in, at, every and cron.",
    parameters: scheduleSchema,
    effect: "keyed",
    needsApproval,
    describeCall: ({ message, ...when }) => `Schedule a turn of the agent (${JSON.stringify(when)}): ${message}`,
    execute: async ({ message, until, ...when }, run) => {
      const input = `You scheduled this message for yourself:\n\n${message}`;
      const times = until === undefined ? when : { ...when, endAt: until };
      return shown(await run.schedules.add({ input, ...times }, { maxOpen, minDistanceMs }));
    },
  });
  const list = defineTool({
    name: "list_scheduled_turns",
    description: "Lists the later turns that you have scheduled and that are still to come.",
    parameters: z.strictObject({}),
    effect: "none",
    execute: async (_args, run: RunContext) => (await run.schedules.list()).map(shown),
  });
  const cancel = defineTool({
    name: "cancel_scheduled_turn",
    description: "Cancels a later turn that you have scheduled, with all its repetitions.",
    parameters: z.strictObject({ id: z.string().min(1).max(128).describe("As list_scheduled_turns gives it.") }),
    effect: "keyed",
    execute: async ({ id }, run) =>
      (await run.schedules.cancel(id)) ? "Cancelled." : `There is no scheduled turn ${JSON.stringify(id)}.`,
  });
  return Object.freeze([schedule, list, cancel] as readonly Tool[]);
}

/** A schedule as its agent sees it. */
function shown({ key, input, nextAt, times }: Schedule) {
  return {
    id: key,
    next: nextAt === null ? null : new Date(nextAt).toISOString(),
    repeats: times.kind !== "at",
    message: input,
  };
}
