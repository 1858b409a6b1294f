import { z } from "zod";
import type { DeepReadonly } from "../base/index.ts";
import { limitsSchema, reservationSchema } from "../budget/index.ts";
import { hookCountsSchema, wakingReportSchema } from "./entry-parts.ts";
import { executionStateSchema } from "./execution.ts";
import { reactStateSchema } from "./react/index.ts";

/** A granted model call without an outcome. If its epoch is older than the owner's, its caller is gone. */
export const openRequestSchema = z.object({
  step: z.number().int(),
  attempt: z.number().int(),
  epoch: z.number().int(),
  at: z.number().int(),
  model: z.string(),
  messageId: z.string(),
  /** `react.ordinal` at the start of the call: it has not seen anything newer. */
  ordinal: z.number().int(),
  reservation: reservationSchema,
});
export type OpenRequest = DeepReadonly<z.infer<typeof openRequestSchema>>;

export const openGenerateSchema = z.object({
  run: z.string(),
  index: z.number().int(),
  epoch: z.number().int(),
  reservation: reservationSchema,
});
export type OpenGenerate = DeepReadonly<z.infer<typeof openGenerateSchema>>;

/**
 * Everything that pure code knows about one turn: the fold of its entries, and the context of the turn machine. Only
 * ids and counters; the contents are in the store.
 */
export const turnStateSchema = z.object({
  turnId: z.string(),
  number: z.number().int().positive(),
  startedAt: z.number().int(),
  limits: limitsSchema,
  accountId: z.string(),
  actorId: z.string().nullable(),
  hooks: hookCountsSchema,
  /** Whether the last answer must fit a schema. */
  checksOutput: z.boolean(),
  /** Whether the last answer of this step fits the schema; null: it was not checked. */
  outputFits: z.boolean().nullable(),
  /** How many answers did not fit and were asked for again. */
  outputRepairs: z.number().int().nonnegative(),
  maxConsecutiveToolFailures: z.number().int(),
  /** Rows R: decides what the turn does next. */
  react: reactStateSchema,
  /** Rows S: records what the turn has done. */
  execution: executionStateSchema,
  /** The current step; 0 before the first. */
  step: z.number().int().nonnegative(),
  /** How many attempts of this step's model call were made. */
  attempt: z.number().int().nonnegative(),
  retryAt: z.number().int().nullable(),
  /** Whether its budget allows no further call: tool calls in its answer are not run. */
  isLastCall: z.boolean(),
  openRequest: openRequestSchema.nullable(),
  openGenerates: z.array(openGenerateSchema),
  /** Calls of this round without a result. */
  openCallIds: z.array(z.string()),
  roundCalls: z.number().int().nonnegative(),
  roundFailures: z.number().int().nonnegative(),
  consecutiveToolFailures: z.number().int().nonnegative(),
  /** Hooks committed since the last answer, or since the start before the first: `hook:index`. */
  appliedHooks: z.array(z.string()),
  /** Calls that have their result but have not been reviewed by all hooks. */
  unreviewedCallIds: z.array(z.string()),
  /** Calls that wait for a child, or for somebody's decision. */
  waitingCallIds: z.array(z.string()),
  /** Calls that are in a queue: the owner runs nothing of them. */
  queuedCallIds: z.array(z.string()),
  /** Undecided requests. */
  openRequestIds: z.array(z.string()),
  /** Messages that enter history once every call of the round has its result. */
  heldMessageIds: z.array(z.string()),
  /** How many messages of the conversation the model sees; null: its history compiler has no window. */
  contextWindowSize: z.number().int().nullable(),
  /** Earlier calls whose results the model asked to see again. */
  loadedCallIds: z.array(z.string()),
  /** How many compactions there were since the last answer. */
  compactions: z.number().int().nonnegative(),
  hasInstructions: z.boolean(),
  /** Spawned children that have not ended. */
  openChildIds: z.array(z.string()),
  /** Children in the background whose end has not been reported. */
  backgroundIds: z.array(z.string()),
  /** Children that have ended and left their own children in the background. */
  leavingIds: z.array(z.string()),
  /** Reports that call for a turn and that no model call has seen. */
  waking: z.array(wakingReportSchema),
  toolCalls: z.number().int().nonnegative(),
  outputMessageId: z.string().nullable(),
});
export type TurnState = DeepReadonly<z.infer<typeof turnStateSchema>>;

/** The id of a step, and the prefix of the ids of its calls and messages. */
export function stepIdOf(turnId: string, step: number): string {
  return `${turnId}:${step}`;
}

export function hookKeyOf(hook: string, index: number): string {
  return `${hook}:${index}`;
}
