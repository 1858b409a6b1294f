import type { Account } from "./account.ts";
import type { ReservedAmounts } from "./amounts.ts";
import { reserve } from "./reserve.ts";
import { MAX_PASSES, type Waiter } from "./waiter.ts";
import {
  chainOf,
  covers,
  type FindAccount,
  freeOn,
  isAnythingReserved,
  isOverdue,
  isSurelyHeld,
  needOf,
} from "./waiting-room.ts";

/** The line as it is after a wake, and the agents that have to be told, in its order. */
export interface Woken {
  readonly waiters: readonly Waiter[];
  readonly agentIds: readonly string[];
}

/**
 * Who may ask again: in the order of the line those that fit beside each other and beside what is kept for those told
 * earlier, and those for whom a limit has left too little. Nobody is told twice; whoever was told long ago and did not ask is
 * forgotten. To be called when room came free, a limit was used up, or somebody left the line.
 */
export function wakeNext(line: readonly Waiter[], find: FindAccount, now: number, wallNow: number = now): Woken {
  const claimed = new Map<string, Account>();
  const withClaims: FindAccount = (id) => claimed.get(id) ?? find(id);
  /** Accounts on which one that was told will ask. */
  const awaited = new Set<string>();
  const holding: Waiter[] = [];
  const agentIds = new Set<string>();
  const waiters: Waiter[] = [];
  for (const waiter of line) {
    if (isOverdue(waiter, wallNow)) continue;
    const chain = chainOf(waiter, withClaims);
    const outcome = isSurelyHeld(waiter, chain, now, wallNow) ? undefined : reserve(chain, waiter.ask, now, wallNow);
    const isHeld = outcome?.granted
      ? holding.some((one) => isBehind(waiter, outcome.reservation, one, { withClaims, awaited, now }))
      : outcome === undefined || outcome.reason === "mustWait" || !isRefused(waiter, find, now, wallNow);
    if (isHeld && waiter.passed >= MAX_PASSES) holding.push(waiter);
    if (!isHeld && outcome?.granted) {
      for (const account of outcome.accounts) claimed.set(account.id, account);
    }
    if (!isHeld || waiter.wokenAt !== null) for (const id of waiter.blockedOn) awaited.add(id);
    if (isHeld || waiter.wokenAt !== null) {
      waiters.push(waiter);
      continue;
    }
    waiters.push({ ...waiter, wokenAt: wallNow });
    agentIds.add(waiter.ask.agentId);
  }
  return { waiters, agentIds: [...agentIds] };
}

/** Whether it would be refused for good also where nobody takes the room and the steps that are kept for those before it. */
function isRefused(waiter: Waiter, find: FindAccount, now: number, wallNow: number): boolean {
  const outcome = reserve(chainOf(waiter, find), waiter.ask, now, wallNow);
  return !outcome.granted && outcome.reason !== "mustWait";
}

/** Whether the call would have to wait behind one before it that does not fit yet (`reserveInTurn`). */
function isBehind(
  waiter: Waiter,
  taken: ReservedAmounts,
  one: Waiter,
  {
    withClaims,
    awaited,
    now,
  }: { readonly withClaims: FindAccount; readonly awaited: ReadonlySet<string>; readonly now: number },
): boolean {
  if (one.ask.agentId === waiter.ask.agentId) return false;
  const accounts = chainOf(one, withClaims);
  const need = needOf(one, accounts, now);
  if (!need) return false;
  return accounts.some((account) => {
    if (!one.blockedOn.includes(account.id) || !waiter.blockedOn.includes(account.id)) return false;
    if (!awaited.has(account.id) && !isAnythingReserved(account)) return false;
    const free = freeOn(account);
    const left = { tokens: free.tokens - taken.tokens, costMicros: free.costMicros - taken.costMicros };
    return !covers(left, need);
  });
}
