import { z } from "zod";
import { type DeepReadonly, deepFreeze, flagSchema, optionalTextSchema, textSchema } from "../base/index.ts";
import { limitNameSchema } from "../budget/index.ts";

/** Reasons to stop, highest priority first. */
export const stopReasons = [
  "error",
  "stop_requested",
  "steps_limit",
  "token_limit",
  "cost_limit",
  "time_limit",
  "retry_limit",
  "refusal",
  "finish_reason",
  "user_requested",
  "completed",
  "unknown",
] as const;
export const stopReasonSchema = z.enum(stopReasons);
/** Why a turn ended, for programs. */
export type StopReason = DeepReadonly<z.infer<typeof stopReasonSchema>>;

/** A request to stop the turn; there can be several at once. */
export const stopSignalSchema = z.object({
  reason: stopReasonSchema,
  message: textSchema,
  /** The source: `budget`, `hook:<plugin>`, `tool:<name>`, `user`, `runtime`. */
  source: textSchema,
  accountId: optionalTextSchema,
  limit: limitNameSchema.optional(),
  /** The used amount of that limit, in its unit: steps, tokens, micro-dollars, milliseconds, calls; for a deadline, the time. */
  used: z.number().optional(),
  max: z.number().optional(),
});
/** One reason to stop a turn, and its source. */
export type StopSignal = DeepReadonly<z.infer<typeof stopSignalSchema>>;

/** Whether a turn that ends for this reason has failed: it has an error, and its agent needs a decision. */
export function isFailure(reason: StopReason): boolean {
  return reason === "error" || reason === "retry_limit";
}

/** Whether the turn was stopped; false only for `completed` and `finish_reason`. */
export function wasForceStopped(reason: StopReason): boolean {
  return reason !== "completed" && reason !== "finish_reason";
}

export const continuationSchema = z.object({
  stopSignals: z.array(stopSignalSchema),
  isContinuationRequested: flagSchema,
});
export type Continuation = DeepReadonly<z.infer<typeof continuationSchema>>;

export const noContinuation: Continuation = deepFreeze({ stopSignals: [], isContinuationRequested: false });
