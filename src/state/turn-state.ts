import { z } from "zod";
import {
  countSchema,
  flagSchema,
  integerOrNullSchema,
  integerSchema,
  optionalFlagSchema,
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
  /** `react.ordinal` at the start of the call; the call has not seen newer messages. */
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
 * All data that pure code has about one turn: the fold of its entries, and the context of the turn machine. Contains only ids and
 * counters; the contents are in the store.
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
  /** Number of answers that did not fit and were requested again. */
  outputRepairs: countSchema,
  maxConsecutiveToolFailures: integerSchema,
  /** Rows R: decides the next action of the turn. */
  react: foldedReactSchema,
  /** Rows S: records the actions of the turn. */
  execution: executionStateSchema,
  /** The current step; 0 before the first. */
  step: countSchema,
  /** Number of attempts of this step's model call. */
  attempt: countSchema,
  retryAt: integerOrNullSchema,
  /** Whether its budget allows no further call; tool calls in its answer are then not run. */
  isLastCall: flagSchema,
  openRequest: openRequestSchema.nullable(),
  openGenerates: z.array(openGenerateSchema),
  /** Calls of this round without a result. */
  openCallIds: z.array(textSchema),
  roundCalls: countSchema,
  roundFailures: countSchema,
  consecutiveToolFailures: countSchema,
  /** Hooks committed since the last answer, or, before the first one, since the start: `hook:index`. */
  appliedHooks: z.array(textSchema),
  /** Calls that have their result but were not reviewed by all hooks. */
  unreviewedCallIds: z.array(textSchema),
  /** Calls that wait for a child, or for a decision on a request. */
  waitingCallIds: z.array(textSchema),
  /** Whether a person is asked for more budget, and has not decided. Default `false`. */
  asksForBudget: optionalFlagSchema,
  /** Calls in a queue: the owner runs none of their code. */
  queuedCallIds: z.array(textSchema),
  /** Undecided requests. */
  openRequestIds: z.array(textSchema),
  /** Messages that are added to history once every call of the round has its result. */
  heldMessageIds: z.array(textSchema),
  /** Number of messages of the conversation that the model sees; `null` if its history compiler has no window. */
  contextWindowSize: integerOrNullSchema,
  /** Calls of this round with a result that may be the turn's answer, until one of them was checked; absent without any. */
  endingCallIds: z.array(textSchema).optional(),
  /** Earlier calls whose results the model requested again. */
  loadedCallIds: z.array(textSchema),
  /** Number of compactions since the last answer. */
  compactions: countSchema,
  hasInstructions: flagSchema,
  /** Spawned children that have not ended. */
  openChildIds: z.array(textSchema),
  /** Background children whose end was not reported. */
  backgroundIds: z.array(textSchema),
  /** Children that have ended and left background children. */
  leavingIds: z.array(textSchema),
  /** Reports and inputs that require a model call and that none has seen. */
  waking: z.array(wakingReportSchema),
  toolCalls: countSchema,
  outputMessageId: textOrNullSchema,
});
export type TurnState = DeepReadonly<z.infer<typeof turnStateSchema>>;

/** The id of a step, and the prefix of the ids of its calls and messages. */
export function stepIdOf(turnId: string, step: number): string {
  return `${turnId}:${step}`;
}

/** `inputId`: the message that an `afterUserInput` hook looked at, if it arrived during the turn. */
export function hookKeyOf(hook: string, index: number, inputId?: string): string {
  return inputId === undefined ? `${hook}:${index}` : `${hook}:${index}:${inputId}`;
}
