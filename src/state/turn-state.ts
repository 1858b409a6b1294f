import { z } from "zod";
import {
  countSchema,
  flagSchema,
  integerOrNullSchema,
  integerSchema,
  positiveSchema,
  textOrNullSchema,
  textSchema,
} from "../base/index.ts";
import type { DeepReadonly } from "../base/index.ts";
import { limitsSchema, reservationSchema } from "../budget/index.ts";
import { hookCountsSchema, wakingReportSchema } from "./entry-parts.ts";
import { executionStateSchema } from "./execution.ts";
import { foldedReactSchema } from "./react/index.ts";

/** A granted model call without an outcome. If its epoch is older than the owner's, its caller is gone. */
export const openRequestSchema = z.object({
  step: integerSchema,
  attempt: integerSchema,
  epoch: integerSchema,
  at: integerSchema,
  model: textSchema,
  messageId: textSchema,
  /** `react.ordinal` at the start of the call: it has not seen anything newer. */
  ordinal: integerSchema,
  reservation: reservationSchema,
});
export type OpenRequest = DeepReadonly<z.infer<typeof openRequestSchema>>;

export const openGenerateSchema = z.object({
  run: textSchema,
  index: integerSchema,
  epoch: integerSchema,
  reservation: reservationSchema,
});
export type OpenGenerate = DeepReadonly<z.infer<typeof openGenerateSchema>>;

/**
 * Everything that pure code knows about one turn: the fold of its entries, and the context of the turn machine. Only
 * ids and counters; the contents are in the store.
 */
export const turnStateSchema = z.object({
  turnId: textSchema,
  number: positiveSchema,
  startedAt: integerSchema,
  limits: limitsSchema,
  accountId: textSchema,
  actorId: textOrNullSchema,
  hooks: hookCountsSchema,
  /** Whether the last answer must fit a schema. */
  checksOutput: flagSchema,
  /** Whether the last answer of this step fits the schema; `null` if it was not checked. */
  outputFits: flagSchema.nullable(),
  /** How many answers did not fit and were asked for again. */
  outputRepairs: countSchema,
  maxConsecutiveToolFailures: integerSchema,
  /** Rows R: decides what the turn does next. */
  react: foldedReactSchema,
  /** Rows S: records what the turn has done. */
  execution: executionStateSchema,
  /** The current step; 0 before the first. */
  step: countSchema,
  /** How many attempts of this step's model call were made. */
  attempt: countSchema,
  retryAt: integerOrNullSchema,
  /** Whether its budget allows no further call: tool calls in its answer are not run. */
  isLastCall: flagSchema,
  openRequest: openRequestSchema.nullable(),
  openGenerates: z.array(openGenerateSchema),
  /** Calls of this round without a result. */
  openCallIds: z.array(textSchema),
  roundCalls: countSchema,
  roundFailures: countSchema,
  consecutiveToolFailures: countSchema,
  /** Hooks committed since the last answer, or since the start before the first: `hook:index`. */
  appliedHooks: z.array(textSchema),
  /** Calls that have their result but have not been reviewed by all hooks. */
  unreviewedCallIds: z.array(textSchema),
  /** Calls that wait for a child, or for a decision on a request. */
  waitingCallIds: z.array(textSchema),
  /** Calls that are in a queue: the owner runs nothing of them. */
  queuedCallIds: z.array(textSchema),
  /** Undecided requests. */
  openRequestIds: z.array(textSchema),
  /** Messages that enter history once every call of the round has its result. */
  heldMessageIds: z.array(textSchema),
  /** How many messages of the conversation the model sees; `null` if its history compiler has no window. */
  contextWindowSize: integerOrNullSchema,
  /** Earlier calls whose results the model asked to see again. */
  loadedCallIds: z.array(textSchema),
  /** How many compactions there were since the last answer. */
  compactions: countSchema,
  hasInstructions: flagSchema,
  /** Spawned children that have not ended. */
  openChildIds: z.array(textSchema),
  /** Children in the background whose end has not been reported. */
  backgroundIds: z.array(textSchema),
  /** Children that have ended and left their own children in the background. */
  leavingIds: z.array(textSchema),
  /** Reports that call for a turn and that no model call has seen. */
  waking: z.array(wakingReportSchema),
  toolCalls: countSchema,
  outputMessageId: textOrNullSchema,
});
export type TurnState = DeepReadonly<z.infer<typeof turnStateSchema>>;

/** The id of a step, and the prefix of the ids of its calls and messages. */
export function stepIdOf(turnId: string, step: number): string {
  return `${turnId}:${step}`;
}

export function hookKeyOf(hook: string, index: number): string {
  return `${hook}:${index}`;
}
