import { z } from "zod";
import { reservedAmountsSchema } from "./amounts.ts";
import { reservationAskSchema } from "./reservation-ask.ts";

/** A call that waits for others' reservations, as the top account of its tree keeps it. */
export const waiterSchema = z.object({
  /** Its last ask. */
  ask: reservationAskSchema,
  /** With the least output: where a limit leaves less than this it is refused. */
  least: reservedAmountsSchema,
  /** Accounts on which there was no room for it, at any of its asks. */
  blockedOn: z.array(z.string()),
  /** How often a call was granted that came after it and took room that it waits for. */
  passed: z.number().int().nonnegative(),
  /** Since when it has been told that there is room, and has not asked yet. */
  wokenAt: z.number().int().nullable(),
});
export type Waiter = z.infer<typeof waiterSchema>;

/** So often later calls may take the room that one waits for; from then on they wait behind it. */
export const MAX_PASSES = 8;

/** How long room is kept for a waiter that was told of it and does not ask, in milliseconds; after that it is forgotten. */
export const WAKE_CLAIM_MS = 10_000;
