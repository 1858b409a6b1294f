import type { Account } from "./account.ts";
import { nothingReserved, type ReservedAmounts } from "./amounts.ts";
import { reserve } from "./reserve.ts";
import { WAKE_CLAIM_MS, type Waiter } from "./waiter.ts";

/** How much room there is on accounts, and how much a waiter needs: pure figures. */

export type FindAccount = (id: string) => Account | undefined;

/** What is neither used nor reserved; without end where nothing limits it. Below 0 where more was used than was allowed. */
export function freeOn({ limits, used, reserved }: Account): ReservedAmounts {
  return {
    tokens: (limits.maxTokens ?? Number.POSITIVE_INFINITY) - used.tokens - reserved.tokens,
    costMicros: (limits.maxCostMicros ?? Number.POSITIVE_INFINITY) - used.costMicros - reserved.costMicros,
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
export function needOf({ ask }: Waiter, accounts: readonly Account[], now: number): ReservedAmounts | undefined {
  const free = accounts.map((account) => ({ ...account, reserved: nothingReserved }));
  const outcome = reserve(free, ask, now);
  return outcome.granted ? outcome.reservation : undefined;
}

/** Whether it was told of room so long ago that nothing is kept for it any more; so it is after a jump of the clock. */
export function isOverdue({ wokenAt }: Waiter, wallNow: number): boolean {
  return wokenAt !== null && Math.abs(wallNow - wokenAt) > WAKE_CLAIM_MS;
}
