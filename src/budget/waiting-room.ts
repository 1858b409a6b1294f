import { type Account, usedAt } from "./account.ts";
import { nothingReserved, type ReservedAmounts } from "./amounts.ts";
import { costBound } from "./price.ts";
import type { ReservationAsk } from "./reservation-ask.ts";
import { promptOf, reserve } from "./reserve.ts";
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
export function isSurelyHeld({ ask, least }: Waiter, chain: readonly Account[], now: number, wallNow: number): boolean {
  let hasRoom = true;
  for (const account of chain) {
    const { limits, used, reserved } = account;
    const tokens = (limits.maxTokens ?? Number.POSITIVE_INFINITY) - used.tokens;
    const micros = (limits.maxCostMicros ?? Number.POSITIVE_INFINITY) - used.costMicros;
    if (tokens < least.tokens || micros < least.costMicros || isOutOfStepsOrTime(account, ask, now, wallNow))
      return false;
    if (tokens - reserved.tokens < least.tokens || micros - reserved.costMicros < least.costMicros) hasRoom = false;
  }
  return !hasRoom;
}

function isOutOfStepsOrTime(
  account: Account,
  { opensStep, price }: ReservationAsk,
  now: number,
  wallNow: number,
): boolean {
  const { limits, used } = account;
  const { maxSteps, maxTreeSteps, maxActiveMs, deadlineAt, maxCostMicros } = limits;
  if (maxCostMicros !== undefined && !price) return true;
  if (opensStep && maxSteps !== undefined && used.steps >= maxSteps) return true;
  if (opensStep && maxTreeSteps !== undefined && used.treeSteps >= maxTreeSteps) return true;
  if (deadlineAt !== undefined && wallNow >= deadlineAt) return true;
  return maxActiveMs !== undefined && usedAt(account, now).activeMs >= maxActiveMs;
}

/** Whether it was told of room so long ago that nothing is kept for it any more; so it is after a jump of the clock. */
export function isOverdue({ wokenAt }: Waiter, wallNow: number): boolean {
  return wokenAt !== null && Math.abs(wallNow - wokenAt) > WAKE_CLAIM_MS;
}
