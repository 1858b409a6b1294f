import type { Account } from "./account.ts";
import type { ReservedAmounts } from "./amounts.ts";
import { gateOf, reserve } from "./reserve.ts";
import { MAX_PASSES, type Waiter, chainOf, covers, type FindAccount, freeOn, isAnythingReserved, isSurelyHeld, leftOn, needOf, withoutOverdue } from "./waiter.ts";

/** The line as it is after a wake, and the agents that have to be told, in its order. */
export interface Woken {
  readonly line: readonly Waiter[];
  readonly agentIds: readonly string[];
}

export interface WakeContext {
  /** The account at the top of the tree, on which all of the line wait, or below it. */
  readonly topId: string;
  readonly find: FindAccount;
  /** All accounts that were changed since somebody was looked for last: only for them a call may be refused now. */
  readonly changed: readonly Account[];
}

/**
 * Who may ask again: in the order of the line those that fit beside each other and beside what is kept for those told
 * earlier, and those for whom a limit has left too little. Nobody is told twice; whoever was told long ago and did not ask is
 * forgotten. To be called when room came free, a limit was used up, or somebody left the line. `now`: steady time.
 */
export function wakeNext(all: readonly Waiter[], context: WakeContext, now: number, wallNow: number = now): Woken {
  const { find, topId } = context;
  const { line, mayRefuse } = withNeeds(withoutOverdue(all, now), context, now, wallNow);
  const claimed = new Map<string, Account>();
  const withClaims: FindAccount = (id) => claimed.get(id) ?? find(id);
  /** Accounts on which one that was told will ask. */
  const awaited = new Set<string>();
  const holding: Waiter[] = [];
  const told = new Set<Waiter>();
  const smallest = smallestNeed(line);
  for (const waiter of line) {
    const top = withClaims(topId);
    // Nobody fits any more, and nobody is refused: the rest of a long line need not be looked at.
    if (!mayRefuse && top && !covers(freeOn(top), smallest)) break;
    const chain = chainOf(waiter, withClaims);
    const outcome = isSurelyHeld(waiter, chain, now, wallNow) ? undefined : reserve(chain, waiter.ask, now, wallNow);
    const isHeld = outcome?.granted
      ? holding.some((one) => isBehind(waiter, outcome.reservation, one, { withClaims, awaited, now, wallNow }))
      : outcome === undefined || outcome.reason === "mustWait" || !isRefused(waiter, find, now, wallNow);
    if (isHeld && waiter.passed >= MAX_PASSES) holding.push(waiter);
    if (!isHeld && outcome?.granted) {
      for (const account of outcome.accounts) claimed.set(account.id, account);
    }
    if (!isHeld || waiter.wokenAt !== null) for (const id of waiter.blockedOn) awaited.add(id);
    if (!isHeld && waiter.wokenAt === null) told.add(waiter);
  }
  if (told.size === 0) return { line, agentIds: [] };
  return {
    line: line.map((waiter) => (told.has(waiter) ? { ...waiter, wokenAt: now } : waiter)),
    agentIds: [...new Set([...told].map(({ ask }) => ask.agentId))],
  };
}

/**
 * What each takes by what its accounts have used now, and whether some call may be refused for good. Both can only have
 * changed where an account that was changed leaves less than what somebody takes.
 */
function withNeeds(
  line: readonly Waiter[],
  { changed, find }: WakeContext,
  now: number,
  wallNow: number,
): { readonly line: readonly Waiter[]; readonly mayRefuse: boolean } {
  const largest = { tokens: 0, costMicros: 0 };
  for (const { need } of line) {
    largest.tokens = Math.max(largest.tokens, need.tokens);
    largest.costMicros = Math.max(largest.costMicros, need.costMicros);
  }
  const near = changed.filter((account) => {
    const step = { agentId: account.agentId, opensStep: true };
    return !covers(leftOn(account), largest) || gateOf(account, step, now, wallNow) !== undefined;
  });
  if (near.length === 0) return { line, mayRefuse: false };
  let mayRefuse = false;
  let isSame = true;
  const ids = new Set(near.map(({ id }) => id));
  const looked = line.map((waiter) => {
    const chain = chainOf(waiter, find);
    if (!chain.some(({ id }) => ids.has(id))) return waiter;
    const need = needOf(waiter, chain, now, wallNow);
    if (!need) mayRefuse = true;
    if (!need || (covers(need, waiter.need) && covers(waiter.need, need))) return waiter;
    isSame = false;
    return { ...waiter, need };
  });
  return { line: isSame ? line : looked, mayRefuse };
}

/** No call of the line takes less than this. */
function smallestNeed(line: readonly Waiter[]): ReservedAmounts {
  let tokens = Number.POSITIVE_INFINITY;
  let costMicros = Number.POSITIVE_INFINITY;
  for (const { need } of line) {
    tokens = Math.min(tokens, need.tokens);
    costMicros = Math.min(costMicros, need.costMicros);
  }
  return { tokens, costMicros };
}

/** Whether it would be refused for good also where nobody takes the room and the steps that are kept for those before it. */
function isRefused(waiter: Waiter, find: FindAccount, now: number, wallNow: number): boolean {
  const outcome = reserve(chainOf(waiter, find), waiter.ask, now, wallNow);
  return !outcome.granted && outcome.reason !== "mustWait";
}

interface WakeState {
  readonly withClaims: FindAccount;
  readonly awaited: ReadonlySet<string>;
  readonly now: number;
  readonly wallNow: number;
}

/** Whether the call would have to wait behind one before it that does not fit yet (`reserveInTurn`). */
function isBehind(
  waiter: Waiter,
  taken: ReservedAmounts,
  one: Waiter,
  { withClaims, awaited, now, wallNow }: WakeState,
): boolean {
  if (one.ask.agentId === waiter.ask.agentId) return false;
  const accounts = chainOf(one, withClaims);
  const need = needOf(one, accounts, now, wallNow);
  if (!need) return false;
  return accounts.some((account) => {
    if (!one.blockedOn.includes(account.id) || !waiter.blockedOn.includes(account.id)) return false;
    if (!awaited.has(account.id) && !isAnythingReserved(account)) return false;
    const free = freeOn(account);
    const left = { tokens: free.tokens - taken.tokens, costMicros: free.costMicros - taken.costMicros };
    return !covers(left, need);
  });
}
