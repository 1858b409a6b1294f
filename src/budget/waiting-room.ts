import type { Account } from "./account.ts";
import { nothingReserved, type ReservedAmounts } from "./amounts.ts";
import { costBound } from "./price.ts";
import type { ReservationAsk } from "./reservation-ask.ts";
import { gateOf, isUnpriced, promptOf, reserve } from "./reserve.ts";
import { type Waiter, WAKE_CLAIM_MS, withoutWaiters } from "./waiter.ts";

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
