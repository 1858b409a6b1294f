import { z } from "zod";
import type { DeepReadonly } from "../base/index.ts";
import { priceSchema } from "./price.ts";

/** What a model call asks for before it is made. */
export const reservationAskSchema = z.object({
  /** Names the call in its agent's tree; the same one when it is asked again after a wait. */
  key: z.string(),
  accountId: z.string(),
  agentId: z.string(),
  /** The prompt as counted. */
  promptTokens: z.number().int().nonnegative(),
  /** What the prompt cannot exceed, whatever the provider's tokenizer; reserved where an account of the chain is `strict`. */
  promptBound: z.number().int().nonnegative(),
  /** The most the call may generate. */
  outputTokens: z.number().int().positive(),
  /** Below this it is not worth making: min(outputTokens, 256). */
  minimumOutputTokens: z.number().int().positive(),
  price: priceSchema.nullable(),
  /** Whether this attempt opens a step; retries and metered side calls do not. */
  opensStep: z.boolean(),
  /** The model's name, under which the accounts keep what is used. */
  model: z.string(),
  /** Whether the reservation should say that it is the last one. Absent: no. */
  finalAnswer: z.boolean().optional(),
});
export type ReservationAsk = DeepReadonly<z.infer<typeof reservationAskSchema>>;
