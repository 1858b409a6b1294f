import type { Moment } from "./account.ts";
import type { Account, ReservedAmounts, Waiter } from "./schemas.ts";
import { gateOf, reserve } from "./reserve.ts";
import {
  MAX_PASSES,
  chainOf,
  covers,
  type FindAccount,
  freeOn,
  isAnythingReserved,
  leftOn,
  mustSurelyWait,
  needOf,
  withoutOverdue,
} from "./reservation-queue.ts";

/** The queue after a wake, and the agents to wake, in queue order. */
export interface Woken {
  readonly queue: readonly Waiter[];
  readonly agentIds: readonly string[];
}

export interface WakeContext {
  /** The top account of the tree: all waiters wait on it or below it. */
  readonly topId: string;
  readonly find: FindAccount;
  /** All accounts that changed since the last call: only they can be a new reason to refuse. */
  readonly changed: readonly Account[];
}

/**
 * Chooses the waiters that may ask again, in queue order: those that fit beside each other and beside the amounts kept free for woken
 * ones, and those that a limit now refuses. None is woken twice; a waiter that was woken long ago and did not ask is removed. Call it
 * when an amount was freed, a limit was used up, or a waiter left the queue.
 */
export function wakeNext(all: readonly Waiter[], context: WakeContext, moment: Moment): Woken {
  const { find, topId } = context;
  const { queue, mayRefuse } = withNeeds(withoutOverdue(all, moment), context, moment);
  const claimed = new Map<string, Account>();
  const withClaims: FindAccount = (id) => claimed.get(id) ?? find(id);
  /** Accounts on which a woken waiter will ask. */
  const awaited = new Set<string>();
  const holding: Waiter[] = [];
  const woken = new Set<Waiter>();
  const smallest = smallestNeed(queue);
  for (const waiter of queue) {
    const top = withClaims(topId);
    // No other waiter fits, and none is refused: the rest of a long queue can be skipped.
    if (!mayRefuse && top && !covers(freeOn(top), smallest)) break;
    const chain = chainOf(waiter, withClaims);
    const outcome = mustSurelyWait(waiter, chain, moment) ? undefined : reserve(chain, waiter.ask, moment);
    const mustWait = outcome?.granted
      ? holding.some((one) => isBehind(waiter, outcome.reservation, one, { withClaims, awaited, moment }))
      : outcome === undefined || outcome.reason === "mustWait" || !isRefused(waiter, find, moment);
    if (mustWait && waiter.passed >= MAX_PASSES) holding.push(waiter);
    if (!mustWait && outcome?.granted) {
      for (const account of outcome.accounts) claimed.set(account.id, account);
    }
    if (!mustWait || waiter.wokenAt !== null) for (const id of waiter.blockedOn) awaited.add(id);
    if (!mustWait && waiter.wokenAt === null) woken.add(waiter);
  }
  if (woken.size === 0) return { queue, agentIds: [] };
  return {
    queue: queue.map((waiter) => (woken.has(waiter) ? { ...waiter, wokenAt: moment.steady } : waiter)),
    agentIds: [...new Set([...woken].map(({ ask }) => ask.agentId))],
  };
}

/**
 * Updates the need of each waiter by the current use of its accounts, and returns whether a call may be refused finally. Both can only
 * change if a changed account leaves less than a waiter needs.
 */
function withNeeds(
  queue: readonly Waiter[],
  { changed, find }: WakeContext,
  moment: Moment,
): { readonly queue: readonly Waiter[]; readonly mayRefuse: boolean } {
  const largest = { tokens: 0, costMicros: 0 };
  for (const { need } of queue) {
    largest.tokens = Math.max(largest.tokens, need.tokens);
    largest.costMicros = Math.max(largest.costMicros, need.costMicros);
  }
  const near = changed.filter((account) => {
    const step = { agentId: account.agentId, opensStep: true };
    return !covers(leftOn(account), largest) || gateOf(account, step, moment) !== undefined;
  });
  if (near.length === 0) return { queue, mayRefuse: false };
  let mayRefuse = false;
  let isSame = true;
  const ids = new Set(near.map(({ id }) => id));
  const looked = queue.map((waiter) => {
    const chain = chainOf(waiter, find);
    if (!chain.some(({ id }) => ids.has(id))) return waiter;
    const need = needOf(waiter, chain, moment);
    if (!need) mayRefuse = true;
    if (!need || (covers(need, waiter.need) && covers(waiter.need, need))) return waiter;
    isSame = false;
    return { ...waiter, need };
  });
  return { queue: isSame ? queue : looked, mayRefuse };
}

/** The minimum need of all waiters. */
function smallestNeed(queue: readonly Waiter[]): ReservedAmounts {
  let tokens = Number.POSITIVE_INFINITY;
  let costMicros = Number.POSITIVE_INFINITY;
  for (const { need } of queue) {
    tokens = Math.min(tokens, need.tokens);
    costMicros = Math.min(costMicros, need.costMicros);
  }
  return { tokens, costMicros };
}

/** Whether it would be refused even if the waiters before it used none of the amounts and steps kept for them. */
function isRefused(waiter: Waiter, find: FindAccount, moment: Moment): boolean {
  const outcome = reserve(chainOf(waiter, find), waiter.ask, moment);
  return !outcome.granted && outcome.reason !== "mustWait";
}

interface WakeState {
  readonly withClaims: FindAccount;
  readonly awaited: ReadonlySet<string>;
  readonly moment: Moment;
}

/** Whether the waiter would have to wait behind `one`, which does not fit yet (`reserveQueued`). */
function isBehind(
  waiter: Waiter,
  taken: ReservedAmounts,
  one: Waiter,
  { withClaims, awaited, moment }: WakeState,
): boolean {
  if (one.ask.agentId === waiter.ask.agentId) return false;
  const accounts = chainOf(one, withClaims);
  const need = needOf(one, accounts, moment);
  if (!need) return false;
  return accounts.some((account) => {
    if (!one.blockedOn.includes(account.id) || !waiter.blockedOn.includes(account.id)) return false;
    if (!awaited.has(account.id) && !isAnythingReserved(account)) return false;
    const free = freeOn(account);
    const left = { tokens: free.tokens - taken.tokens, costMicros: free.costMicros - taken.costMicros };
    return !covers(left, need);
  });
}
