import type { Account } from "./account.ts";
import type { ReservedAmounts } from "./amounts.ts";
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

export function accountsOf({ blockedOn }: Waiter, find: FindAccount): Account[] {
  return blockedOn.flatMap((id) => find(id) ?? []);
}

/**
 * What a waiter would have reserved now, at most: near a limit its output is made smaller, to what the limit leaves. (Where
 * both kinds are limited and one leaves less, it takes less of the other too; how much less only its price could tell.)
 */
export function needOf({ most }: Waiter, accounts: readonly Account[]): ReservedAmounts {
  const left = leftOn(accounts);
  return { tokens: Math.min(most.tokens, left.tokens), costMicros: Math.min(most.costMicros, left.costMicros) };
}

/** Whether a limit has been reached meanwhile that leaves too little for it, or no step. */
export function isExhaustedFor({ agentId, least, opensStep }: Waiter, accounts: readonly Account[]): boolean {
  if (!covers(leftOn(accounts), least)) return true;
  if (!opensStep) return false;
  return accounts.some(({ agentId: holder, limits, used }) => {
    const ownLimit = holder === agentId ? (limits.maxSteps ?? Number.POSITIVE_INFINITY) : Number.POSITIVE_INFINITY;
    return used.steps >= ownLimit || used.treeSteps >= (limits.maxTreeSteps ?? Number.POSITIVE_INFINITY);
  });
}

/** What the limits leave of the tightest account, were nothing reserved. */
function leftOn(accounts: readonly Account[]): ReservedAmounts {
  let [tokens, costMicros] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  for (const { limits, used } of accounts) {
    if (limits.maxTokens !== undefined) tokens = Math.min(tokens, limits.maxTokens - used.tokens);
    if (limits.maxCostMicros !== undefined) costMicros = Math.min(costMicros, limits.maxCostMicros - used.costMicros);
  }
  return { tokens, costMicros };
}

/** Whether it was told of room so long ago that nothing is kept for it any more; so it is after a jump of the clock. */
export function isOverdue({ wokenAt }: Waiter, now: number): boolean {
  return wokenAt !== null && Math.abs(now - wokenAt) > WAKE_CLAIM_MS;
}
