import { z } from "zod";
import type { DeepReadonly } from "../base/index.ts";
import { reservedAmountsSchema } from "./amounts.ts";
import { reservationAskSchema } from "./reservation-ask.ts";

/** A call that waits for others' reservations: one row of the line of its tree's top account. */
export const waiterSchema = z.object({
  /** Its last ask. */
  ask: reservationAskSchema,
  /** Grows along the line, in the order of first asks. */
  place: z.number().int().positive(),
  /** With the least output: where a limit leaves less than this it is refused. */
  least: reservedAmountsSchema,
  /** What it takes where nothing else is reserved, by what its accounts had used when that came into question last. */
  need: reservedAmountsSchema,
  /** Accounts on which there was no room for it, at any of its asks. */
  blockedOn: z.array(z.string()),
  /** How often a call was granted that came after it and took room that it waits for. */
  passed: z.number().int().nonnegative(),
  /** Since when, by the steady time, it has been told that there is room, and has not asked yet. */
  wokenAt: z.number().int().nullable(),
});
export type Waiter = DeepReadonly<z.infer<typeof waiterSchema>>;

/** What the account at the top of a tree keeps of the line: the waiters are rows of their own, so that it stays short. */
export const lineStateSchema = z.object({
  /** How many wait. */
  waiting: z.number().int().nonnegative(),
  /** Another one with each change of the line: whoever knows the waiters of this revision need not read them again. */
  revision: z.string(),
  /** When, by the steady time, an alarm looks for those who were told of room and did not ask; null: none is set. */
  alarmAt: z.number().int().nullable(),
});
export type LineState = DeepReadonly<z.infer<typeof lineStateSchema>>;

/** So often later calls may take the room that one waits for; from then on they wait behind it. */
export const MAX_PASSES = 8;

/** How long room is kept for a waiter that was told of it and does not ask, in milliseconds; after that it is forgotten. */
export const WAKE_CLAIM_MS = 10_000;

/** When room is no longer kept for the first of those who were told of it; undefined when nobody was. */
export function claimsEndAt(line: readonly Waiter[]): number | undefined {
  let first: number | undefined;
  for (const { wokenAt } of line) {
    if (wokenAt !== null && (first === undefined || wokenAt < first)) first = wokenAt;
  }
  return first === undefined ? undefined : first + WAKE_CLAIM_MS + 1;
}

/** The line without those who wait no more, because their turn ended or is held; itself where there are none. */
export function withoutWaiters(line: readonly Waiter[], isGone: (waiter: Waiter) => boolean): readonly Waiter[] {
  return line.some(isGone) ? line.filter((waiter) => !isGone(waiter)) : line;
}
