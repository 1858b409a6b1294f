import { z } from "zod";
import type { DeepReadonly } from "../base/index.ts";

/** A tool call that waits in a queue, or runs wherever that queue is worked on. */
export const queuedCallSchema = z.object({
  turnId: z.string(),
  step: z.number().int().positive(),
  callId: z.string(),
  /** From 1. */
  attempt: z.number().int().positive(),
  queue: z.string(),
  /** Absent: 0. */
  priority: z.number().int().nonnegative().optional(),
  /** Whether it may be run again after whoever ran it has died. */
  isRepeatable: z.boolean(),
  /** Milliseconds since the epoch. */
  addedAt: z.number().int(),
  /** The process that runs it, or ran it last; null: nobody has begun. */
  claimedBy: z.string().nullable(),
  /** What became of it is in the agent's inbox. */
  isEnded: z.boolean(),
});
export type QueuedCall = DeepReadonly<z.infer<typeof queuedCallSchema>>;

/** By their keys. */
export const queuedCallsSchema = z.record(z.string(), queuedCallSchema);
export type QueuedCalls = Readonly<Record<string, QueuedCall>>;

/** What one attempt of a call is known by within its agent. */
export function queuedCallKey({ callId, attempt }: { readonly callId: string; readonly attempt: number }): string {
  return `${callId}#${attempt}`;
}
