import { z } from "zod";
import type { DeepReadonly } from "../base/index.ts";
import { stopReasonSchema } from "./stop.ts";

/** `queued`: behind another turn of its agent. `open`: begun, or about to begin. The others have ended. */
export const turnStatusSchema = z.enum(["queued", "open", "completed", "stopped", "failed"]);

/** One turn of a root agent, as the stores list it. Times are in milliseconds since the epoch. */
export const turnRecordSchema = z.object({
  tenant: z.string(),
  agentId: z.string(),
  turnId: z.string(),
  number: z.number().int().positive(),
  sessionId: z.string().nullable(),
  ownerId: z.string().nullable(),
  /** The key that the turn was asked for with; null: none. */
  key: z.string().nullable(),
  status: turnStatusSchema,
  /** Null until the turn has ended. */
  stopReason: stopReasonSchema.nullable(),
  /** When the turn was accepted. */
  openedAt: z.number().int(),
  /** When the status last changed. */
  changedAt: z.number().int(),
});
export type TurnRecord = DeepReadonly<z.infer<typeof turnRecordSchema>>;
