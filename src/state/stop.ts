import { z } from "zod";
import { limitNameSchema } from "../budget/index.ts";

/** Reasons to stop, highest priority first (row S6). */
export const stopReasons = [
  "error",
  "stop_requested",
  "steps_limit",
  "token_limit",
  "cost_limit",
  "time_limit",
  "retry_limit",
  "finish_reason",
  "user_requested",
  "completed",
  "unknown",
] as const;
export const stopReasonSchema = z.enum(stopReasons);
export type StopReason = z.infer<typeof stopReasonSchema>;

/** A wish that the turn stop; several can stand together. */
export const stopSignalSchema = z.object({
  reason: stopReasonSchema,
  message: z.string(),
  /** Who raised it: `budget`, `hook:<plugin>`, `tool:<name>`, `user`, `runtime`. */
  source: z.string(),
  accountId: z.string().optional(),
  limit: limitNameSchema.optional(),
  /** Of that limit, in its own unit: steps, tokens, micro-dollars, milliseconds, calls; the moment for a deadline. */
  used: z.number().optional(),
  max: z.number().optional(),
});
export type StopSignal = z.infer<typeof stopSignalSchema>;

/** The signal that counts: the highest reason; among equals the first (row S6). */
export function strongestSignal(signals: readonly StopSignal[]): StopSignal | undefined {
  let strongest: StopSignal | undefined;
  for (const signal of signals) {
    if (!strongest || priorityOf(signal.reason) < priorityOf(strongest.reason)) strongest = signal;
  }
  return strongest;
}

/** 0 is the highest priority. */
export function priorityOf(reason: StopReason): number {
  return stopReasons.indexOf(reason);
}

/** Whether a turn that ends for this reason has failed: it has an error, and its agent asks for a decision. */
export function isFailure(reason: StopReason): boolean {
  return reason === "error" || reason === "retry_limit";
}

/** False for `completed` and `finish_reason` alone (row S6). */
export function wasForceStopped(reason: StopReason): boolean {
  return reason !== "completed" && reason !== "finish_reason";
}

export const continuationSchema = z.object({
  stopSignals: z.array(stopSignalSchema),
  isContinuationRequested: z.boolean(),
});
export type Continuation = z.infer<typeof continuationSchema>;

export const noContinuation: Continuation = Object.freeze({ stopSignals: [], isContinuationRequested: false });

/** What `shouldStop` decided and why, in the order of row S5. */
export function shouldStop(continuation: Continuation, hasToolCalls: boolean): boolean {
  if (continuation.stopSignals.length > 0 && !continuation.isContinuationRequested) return true;
  if (continuation.isContinuationRequested) return false;
  return !hasToolCalls;
}
