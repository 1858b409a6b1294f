import type { Account } from "./account.ts";
import { nothingReserved, type ReservedAmounts, reservedAmountsSchema } from "./amounts.ts";
import { costBound } from "./price.ts";
import { type ReservationAsk, gateOf, isUnpriced, promptOf, reserve, reservationAskSchema } from "./reserve.ts";
import { z } from "zod";
import type { DeepReadonly } from "../base/index.ts";

/** A call that waits for others' reservations: one row of the queue of its tree's top account. */
export const waiterSchema = z.object({
  /** Its last ask. */
  ask: reservationAskSchema,
  /** Grows along the queue, which is in the order of first asks. */
  place: z.number().int().positive(),
  /** The call with the least output: it is refused where a limit leaves less. */
  least: reservedAmountsSchema,
  /** The reservation that it would get if nothing else were reserved, as of the last look at its accounts. */
  need: reservedAmountsSchema,
  /** Accounts that had no room for it, at any of its asks. */
  blockedOn: z.array(z.string()),
  /** How many later calls were granted room that it waits for. */
  passed: z.number().int().nonnegative(),
  /** When, by the steady time, it was woken because there is room; null once it has asked again. */
  wokenAt: z.number().int().nullable(),
});
export type Waiter = DeepReadonly<z.infer<typeof waiterSchema>>;

/** How many later calls may take the room that a call waits for; from then on they wait behind it. */
export const MAX_PASSES = 8;

/** How long room is kept for a woken waiter that does not ask, in milliseconds; after that it is forgotten. */
export const WAKE_CLAIM_MS = 10_000;

/** When the first claim of a woken waiter ends; undefined when none is woken. */
export function claimsEndAt(queue: readonly Waiter[]): number | undefined {
  let first: number | undefined;
  for (const { wokenAt } of queue) {
    if (wokenAt !== null && (first === undefined || wokenAt < first)) first = wokenAt;
  }
  return first === undefined ? undefined : first + WAKE_CLAIM_MS + 1;
}

/** The queue without these waiters, whose turn ended or is held; the same array if there are none. */
export function withoutWaiters(queue: readonly Waiter[], isGone: (waiter: Waiter) => boolean): readonly Waiter[] {
  return queue.some(isGone) ? queue.filter((waiter) => !isGone(waiter)) : queue;
}

export type FindAccount = (id: string) => Account | undefined;

/** The limits less what is used and reserved; infinite without a limit, below 0 after an overrun. */
export function freeOn(account: Account): ReservedAmounts {
  const { tokens, costMicros } = leftOn(account);
  return { tokens: tokens - account.reserved.tokens, costMicros: costMicros - account.reserved.costMicros };
}

/** The limits less what is used. */
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

/** The reservation that a call would get if nothing else were reserved; undefined if it would be refused. */
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

/** The reservation of the call with the least output. */
export function leastOf(chain: readonly Account[], ask: ReservationAsk): ReservedAmounts {
  const { price, outputTokens, minimumOutputTokens } = ask;
  const promptTokens = promptOf(chain, ask);
  const output = Math.min(outputTokens, minimumOutputTokens);
  return { tokens: promptTokens + output, costMicros: price ? costBound(price, promptTokens, output) : 0 };
}

/**
 * Whether the call surely has to wait: there is no room for it, and no limit refuses it. It compares a few integers, which
 * is enough for most of a long queue.
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

/** Whether it was woken so long ago that no room is kept for it any more. */
export function isOverdue({ wokenAt }: Waiter, now: number): boolean {
  // A time to come counts too: the tree has come from another store.
  return wokenAt !== null && Math.abs(now - wokenAt) > WAKE_CLAIM_MS;
}

/** The queue without the woken waiters that did not ask in time; the same array if there are none. */
export function withoutOverdue(queue: readonly Waiter[], now: number): readonly Waiter[] {
  return withoutWaiters(queue, (waiter) => isOverdue(waiter, now));
}
