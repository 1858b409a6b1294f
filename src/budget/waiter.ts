import type { Account } from "./account.ts";
import { nothingReserved, type ReservedAmounts, reservedAmountsSchema } from "./amounts.ts";
import { costBound } from "./price.ts";
import { type ReservationAsk, gateOf, isUnpriced, promptOf, reserve, reservationAskSchema } from "./reserve.ts";
import { z } from "zod";
import type { DeepReadonly } from "../base/index.ts";

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

/** How much room there is on accounts, and how much a waiter needs: pure figures. */

export type FindAccount = (id: string) => Account | undefined;

/** What is neither used nor reserved; without end where nothing limits it. Below 0 where more was used than was allowed. */
export function freeOn(account: Account): ReservedAmounts {
  const { tokens, costMicros } = leftOn(account);
  return { tokens: tokens - account.reserved.tokens, costMicros: costMicros - account.reserved.costMicros };
}

/** What is not used, whether or not it is reserved. */
export function leftOn({ limits, used }: Account): ReservedAmounts {
  return {
    tokens: (limits.maxTokens ?? Number.POSITIVE_INFINITY) - used.tokens,
    costMicros: (limits.maxCostMicros ?? Number.POSITIVE_INFINITY) - used.costMicros,
  };
}

export function covers(free: ReservedAmounts, need: ReservedAmounts): boolean {
  return free.tokens >= need.tokens && free.costMicros >= need.costMicros;
}

export function isAnythingReserved({ reserved }: Account): boolean {
  return reserved.tokens > 0 || reserved.costMicros > 0;
}

/** The accounts on which the call would be reserved, from its own to the top. */
export function chainOf({ ask }: Waiter, find: FindAccount): Account[] {
  const chain: Account[] = [];
  for (let next = find(ask.accountId); next; next = next.parentId === null ? undefined : find(next.parentId)) {
    chain.push(next);
  }
  return chain;
}

/** What a waiter would have reserved were nothing reserved; undefined where it would be refused. */
export function needOf(
  { ask }: Pick<Waiter, "ask">,
  accounts: readonly Account[],
  now: number,
  wallNow: number,
): ReservedAmounts | undefined {
  const free = accounts.map((account) => ({ ...account, reserved: nothingReserved }));
  const outcome = reserve(free, ask, now, wallNow);
  if (!outcome.granted) return undefined;
  const { tokens, costMicros } = outcome.reservation;
  return { tokens, costMicros };
}

/** What the call takes with the least output. */
export function leastOf(chain: readonly Account[], ask: ReservationAsk): ReservedAmounts {
  const { price, outputTokens, minimumOutputTokens } = ask;
  const promptTokens = promptOf(chain, ask);
  const output = Math.min(outputTokens, minimumOutputTokens);
  return { tokens: promptTokens + output, costMicros: price ? costBound(price, promptTokens, output) : 0 };
}

/**
 * Whether there surely is no room for it and no limit is used up that would refuse it: a look at a few integers, which is all
 * that most of a long line need.
 */
export function isSurelyHeld(
  { ask, least, need }: Waiter,
  chain: readonly Account[],
  now: number,
  wallNow: number,
): boolean {
  let hasRoom = true;
  let isClamped = false;
  for (const account of chain) {
    if (isUnpriced(account, ask) || gateOf(account, ask, now, wallNow)) return false;
    const left = leftOn(account);
    if (!covers(left, least)) return false;
    if (!covers(left, need)) isClamped = true;
    if (!covers(freeOn(account), need)) hasRoom = false;
  }
  return !hasRoom && (!isClamped || chain.some((account) => !covers(freeOn(account), least)));
}

/** Whether it was told of room so long ago that nothing is kept for it any more. */
export function isOverdue({ wokenAt }: Waiter, now: number): boolean {
  // Also where it was told in a time to come: the tree has come from another store.
  return wokenAt !== null && Math.abs(now - wokenAt) > WAKE_CLAIM_MS;
}

/** The line without those who were told of room and did not ask in time; itself where there are none. */
export function withoutOverdue(line: readonly Waiter[], now: number): readonly Waiter[] {
  return withoutWaiters(line, (waiter) => isOverdue(waiter, now));
}
