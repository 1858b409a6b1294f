import { z } from "zod";
import { limitsSchema, reservationSchema } from "../budget/index.ts";
import type { EntryOf } from "./entry.ts";
import { executionStateSchema, freshExecution } from "./execution.ts";
import { initialAgentState, reactStateSchema } from "./react/index.ts";

/** A model call that was granted and has no outcome yet. An epoch older than the owner's means its caller is gone. */
export const openRequestSchema = z.object({
  step: z.number().int(),
  attempt: z.number().int(),
  epoch: z.number().int(),
  at: z.number().int(),
  model: z.string(),
  messageId: z.string(),
  /** `react.ordinal` when the call started: what is newer was not seen by it. */
  ordinal: z.number().int(),
  reservation: reservationSchema,
});
export type OpenRequest = z.infer<typeof openRequestSchema>;

export const openGenerateSchema = z.object({
  run: z.string(),
  index: z.number().int(),
  epoch: z.number().int(),
  reservation: reservationSchema,
});
export type OpenGenerate = z.infer<typeof openGenerateSchema>;

/**
 * Everything pure code knows about one turn: the fold of its entries, and the context of the turn machine. Ids and
 * counters only; contents stay in the store.
 */
export const turnStateSchema = z.object({
  turnId: z.string(),
  number: z.number().int().positive(),
  startedAt: z.number().int(),
  limits: limitsSchema,
  accountId: z.string(),
  actorId: z.string().nullable(),
  hooks: z.object({ beforeLlm: z.number().int(), afterTools: z.number().int() }),
  maxConsecutiveToolFailures: z.number().int(),
  /** Rows R: what the turn does next follows from this. */
  react: reactStateSchema,
  /** Rows S: what the turn has done. */
  execution: executionStateSchema,
  /** The step under way; 0 before the first. */
  step: z.number().int().nonnegative(),
  /** Attempts made of this step's model call. */
  attempt: z.number().int().nonnegative(),
  retryAt: z.number().int().nullable(),
  openRequest: openRequestSchema.nullable(),
  openGenerates: z.array(openGenerateSchema),
  /** Calls of this round without a result. */
  openCallIds: z.array(z.string()),
  roundCalls: z.number().int().nonnegative(),
  roundFailures: z.number().int().nonnegative(),
  consecutiveToolFailures: z.number().int().nonnegative(),
  /** Hooks that were committed for the coming model call, or after this round: `hook:index`. */
  appliedHooks: z.array(z.string()),
  hasInstructions: z.boolean(),
  /** Children that were spawned and have not ended. */
  openChildIds: z.array(z.string()),
  toolCalls: z.number().int().nonnegative(),
  outputMessageId: z.string().nullable(),
});
export type TurnState = z.infer<typeof turnStateSchema>;

/** The turn as its first entry makes it. */
export function startTurn(entry: EntryOf<"turn.started">): TurnState {
  return {
    turnId: entry.turnId,
    number: entry.number,
    startedAt: entry.at,
    limits: entry.limits,
    accountId: entry.accountId,
    actorId: entry.actorId,
    hooks: entry.hooks,
    maxConsecutiveToolFailures: entry.maxConsecutiveToolFailures,
    react: initialAgentState(),
    execution: freshExecution(entry.turnId, entry.at),
    step: 0,
    attempt: 0,
    retryAt: null,
    openRequest: null,
    openGenerates: [],
    openCallIds: [],
    roundCalls: 0,
    roundFailures: 0,
    consecutiveToolFailures: 0,
    appliedHooks: [],
    hasInstructions: false,
    openChildIds: [],
    toolCalls: 0,
    outputMessageId: null,
  };
}

/** Id of a step, and prefix of what it makes. */
export function stepIdOf(turnId: string, step: number): string {
  return `${turnId}:${step}`;
}

export function hookKeyOf(hook: string, index: number): string {
  return `${hook}:${index}`;
}
