import { z } from "zod";
import {
  countOrNullSchema,
  countSchema,
  flagSchema,
  integerOrNullSchema,
  optionalTextSchema,
  positiveSchema,
  textSchema,
} from "../base/index.ts";
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
import { callSettingsSchema, finishReasonSchema, modelResponseSchema, usageSchema } from "./model-call.ts";

/** The limit that allows only one more call; `used` does not include that call's tokens and cost. */
const lastCallSchema = z.object({
  accountId: textSchema,
  limit: limitNameSchema,
  used: z.number(),
  max: z.number(),
  holder: accountHolderSchema.optional(),
});
export type LastCall = DeepReadonly<z.infer<typeof lastCallSchema>>;

/**
 * The model that was chosen for a call, if the definition's model is made of others: the provider of `model`, and the indexes of
 * the chosen models, outermost first.
 */
const chosenFields = {
  provider: optionalTextSchema,
  route: z.array(countSchema).optional(),
};

/** The model of the next attempt, chosen when this one has failed. */
const nextModelSchema = z.object({
  model: textSchema,
  provider: textSchema,
  /** Indexes of the chosen models, outermost first. */
  route: z.array(countSchema),
  /** Whether it is the next model of the round, called without a wait; otherwise another round begins. */
  isFallback: flagSchema,
});
export type NextModel = DeepReadonly<z.infer<typeof nextModelSchema>>;

export const modelEntrySchemas = [
  z.object({
    type: z.literal("model.requested"),
    ...ofStep,
    attempt: positiveSchema,
    model: textSchema,
    ...chosenFields,
    promptHash: textSchema,
    /** Id of the message that the answer will get. */
    messageId: textSchema,
    ask: reservationAskSchema,
    price: priceSchema.nullable(),
    /** Set by the commit that grants the call. */
    reservation: reservationSchema.nullable(),
    /** The settings of the call, without `providerOptions`; for readers. Absent if there are none. */
    settings: callSettingsSchema.omit({ providerOptions: true }).optional(),
    /** The limit that allows no further call, so that this one may not call tools. Set by the commit. */
    last: lastCallSchema.optional(),
  }),
  z.object({
    type: z.literal("model.responded"),
    ...ofStep,
    attempt: positiveSchema,
    model: textSchema,
    messageId: textSchema,
    hasText: flagSchema,
    calls: z.array(
      z.object({
        callId: textSchema,
        name: textSchema,
        /** A tool on the agent's own context: the ReAct core does not record it. */
        internal: z.literal(true).optional(),
      }),
    ),
    usage: usageSchema,
    costMicros: countOrNullSchema,
    finishReason: finishReasonSchema,
    durationMs: countSchema,
    settlement: settlementSchema,
  }),
  z.object({
    type: z.literal("model.failed"),
    ...ofStep,
    attempt: positiveSchema,
    model: textSchema,
    error: storedErrorSchema,
    /** When the next attempt may start; `null` if there is none. */
    retryAt: integerOrNullSchema,
    /** `undefined` if the next attempt calls the same model. */
    next: nextModelSchema.optional(),
    /** The message that describes the mistake in the answer to the model, for the next attempt. */
    repairMessageId: optionalTextSchema,
    /** Set if it was the last attempt that the definition allows; absent for failures that are never repeated. */
    isExhausted: z.literal(true).optional(),
    /** The billed usage, if known. */
    usage: usageSchema.nullable(),
    settlement: settlementSchema.nullable(),
  }),
  z.object({
    type: z.literal("generate.requested"),
    ...ofStep,
    /** Identifies the run that makes the call: a hook or a tool call. `index` is the call's number within that run, from 0. */
    run: textSchema,
    index: countSchema,
    model: textSchema,
    ...chosenFields,
    promptHash: textSchema,
    ask: reservationAskSchema,
    reservation: reservationSchema.nullable(),
  }),
  z.object({
    type: z.literal("generate.responded"),
    ...ofStep,
    run: textSchema,
    index: countSchema,
    promptHash: textSchema,
    response: modelResponseSchema,
    costMicros: countOrNullSchema,
    settlement: settlementSchema,
  }),
  z.object({
    type: z.literal("generate.failed"),
    ...ofStep,
    run: textSchema,
    index: countSchema,
    error: storedErrorSchema,
    /** Only if the definition's model is made of others; `undefined` if the call has failed for good. */
    next: nextModelSchema.optional(),
    usage: usageSchema.nullable(),
    settlement: settlementSchema,
  }),
] as const;
