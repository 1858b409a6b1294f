import { z } from "zod";
import type { DeepReadonly } from "../base/index.ts";
import {
  limitNameSchema,
  priceSchema,
  reservationAskSchema,
  reservationSchema,
  settlementSchema,
} from "../budget/index.ts";
import { ofStep, accountHolderSchema } from "./entry-parts.ts";
import { storedErrorSchema } from "./execution.ts";
import { finishReasonSchema, modelResponseSchema, usageSchema } from "./model-call.ts";

/** The limit that leaves one last call; `used` does not include that call's tokens and cost. */
const lastCallSchema = z.object({
  accountId: z.string(),
  limit: limitNameSchema,
  used: z.number(),
  max: z.number(),
  holder: accountHolderSchema.optional(),
});
export type LastCall = DeepReadonly<z.infer<typeof lastCallSchema>>;

export const modelEntrySchemas = [
  z.object({
    type: z.literal("model.requested"),
    ...ofStep,
    attempt: z.number().int().positive(),
    model: z.string(),
    promptHash: z.string(),
    /** Id of the message that the answer will become. */
    messageId: z.string(),
    ask: reservationAskSchema,
    price: priceSchema.nullable(),
    /** Set by the commit that grants it. */
    reservation: reservationSchema.nullable(),
    /** The limit that allows no further call, so this one may call no tool. Set by the commit. */
    last: lastCallSchema.optional(),
  }),
  z.object({
    type: z.literal("model.responded"),
    ...ofStep,
    attempt: z.number().int().positive(),
    model: z.string(),
    messageId: z.string(),
    hasText: z.boolean(),
    calls: z.array(
      z.object({
        callId: z.string(),
        name: z.string(),
        /** A tool on the agent's own context: the ReAct core does not record it (row R6). */
        internal: z.literal(true).optional(),
      }),
    ),
    usage: usageSchema,
    costMicros: z.number().int().nonnegative().nullable(),
    finishReason: finishReasonSchema,
    durationMs: z.number().int().nonnegative(),
    settlement: settlementSchema,
  }),
  z.object({
    type: z.literal("model.failed"),
    ...ofStep,
    attempt: z.number().int().positive(),
    model: z.string(),
    error: storedErrorSchema,
    /** When the next attempt may start; null: there is none. */
    retryAt: z.number().int().nullable(),
    /** It was the last attempt that the definition allows; absent for failures that are not repeated anyway. */
    isExhausted: z.literal(true).optional(),
    /** The billed usage, as far as it is known. */
    usage: usageSchema.nullable(),
    settlement: settlementSchema.nullable(),
  }),
  z.object({
    type: z.literal("generate.requested"),
    ...ofStep,
    /** The run that makes the call: a hook or a tool call, with the call's number within that run, from 0. */
    run: z.string(),
    index: z.number().int().nonnegative(),
    model: z.string(),
    promptHash: z.string(),
    ask: reservationAskSchema,
    reservation: reservationSchema.nullable(),
  }),
  z.object({
    type: z.literal("generate.responded"),
    ...ofStep,
    run: z.string(),
    index: z.number().int().nonnegative(),
    promptHash: z.string(),
    response: modelResponseSchema,
    costMicros: z.number().int().nonnegative().nullable(),
    settlement: settlementSchema,
  }),
  z.object({
    type: z.literal("generate.failed"),
    ...ofStep,
    run: z.string(),
    index: z.number().int().nonnegative(),
    error: storedErrorSchema,
    usage: usageSchema.nullable(),
    settlement: settlementSchema,
  }),
] as const;
