import type { Account } from "./account.ts";
import { type MetLimit, metLimit } from "./met-limit.ts";
import { type ReservationAsk, type ReserveOutcome, reserve, type Wish } from "./reserve.ts";
import { MAX_PASSES, type Waiter } from "./waiter.ts";
import { accountsOf, covers, type FindAccount, freeOn, isAnythingReserved, isOverdue, needOf } from "./waiting-room.ts";

/**
 * The order in which calls are granted that wait for others' reservations: pure functions over the line that the top account
 * of a tree keeps.
 *
 * Invariants
 * 1. The line is in the order of first asks; a call that asks again keeps its place, whatever its size has become.
 * 2. Nobody is passed more than `MAX_PASSES` times while something is reserved where it waits, or it was just told of room:
 *    from then on calls that came later must wait behind it. Otherwise a call that fits is granted.
 * 3. Whoever would be granted now, were it to ask, has been told (`wokenAt`), or the room is kept for one before it that
 *    was told. So has whoever would be refused for good by an account that it waits for.
 * 4. Calls of one agent never wait behind each other: all of them ask when the agent is woken.
 */

/** What became of an ask, the accounts it has changed, and whether others may be granted now that could not before. */
export interface ReservedInTurn {
  readonly outcome: ReserveOutcome;
  readonly accounts: readonly Account[];
  readonly mayWake: boolean;
}

/** Reserves as `reserve` does, but behind those that wait longer and were passed often enough. */
export function reserveInTurn(
  chain: readonly Account[],
  ask: ReservationAsk,
  find: FindAccount,
  now: number,
  wallNow: number = now,
): ReservedInTurn {
  const outcome = reserve(chain, ask, now, wallNow);
  const line = chain.at(-1)?.waiters ?? [];
  const own = line.find(({ key }) => key === ask.key);
  const before = own ? line.slice(0, line.indexOf(own)) : line;
  const others = before.filter(({ agentId }) => agentId !== ask.agentId);
  const isAwaited = own !== undefined && own.wokenAt !== null;
  const wait = (wish: Wish, met: MetLimit): ReservedInTurn => {
    const waiting = waiterOf(ask, wish, own);
    const entered = own ? line.map((one) => (one === own ? waiting : one)) : [...line, waiting];
    const waits = { granted: false, reason: "mustWait", wish: waiting } as const;
    return { outcome: { ...waits, ...met }, accounts: withLine(chain.slice(-1), entered), mayWake: isAwaited };
  };
  if (outcome.granted) {
    const { accounts, wish } = outcome;
    const [first, ...more] = mustFollow(others, chain, accounts, find, wallNow);
    if (first) return wait({ ...wish, blockedOn: [first, ...more].map(({ accountId }) => accountId) }, first);
    const rest = notePasses(line, others, accounts, find).filter(({ key }) => key !== ask.key);
    return { outcome, accounts: withLine(accounts, rest), mayWake: own !== undefined };
  }
  if (outcome.reason === "mustWait") {
    const { accountId, limit, used, max } = outcome;
    return wait(outcome.wish, { accountId, limit, used, max });
  }
  if (!own) return { outcome, accounts: [], mayWake: false };
  const rest = line.filter((one) => one !== own);
  return { outcome, accounts: withLine(chain.slice(-1), rest), mayWake: true };
}

function waiterOf({ key, agentId, opensStep }: ReservationAsk, wish: Wish, own: Waiter | undefined): Waiter {
  const { most, least } = wish;
  const blockedOn = [...new Set([...(own?.blockedOn ?? []), ...wish.blockedOn])];
  return { key, agentId, opensStep, most, least, blockedOn, passed: own?.passed ?? 0, wokenAt: null };
}

/** The limits for which a call that fits must wait all the same: behind one that waits longer and was passed often enough. */
function mustFollow(
  others: readonly Waiter[],
  chain: readonly Account[],
  granted: readonly Account[],
  find: FindAccount,
  now: number,
): MetLimit[] {
  const met = new Map<string, MetLimit>();
  for (const waiter of others) {
    if (waiter.passed < MAX_PASSES || isOverdue(waiter, now)) continue;
    for (const account of roomsTaken(waiter, granted, find)) {
      const before = chain.find(({ id }) => id === account.id);
      if (!before || (waiter.wokenAt === null && !isAnythingReserved(before))) continue;
      const limit = account.limits.maxTokens === undefined ? "maxCostMicros" : "maxTokens";
      met.set(account.id, metLimit(before, limit, now));
    }
  }
  return [...met.values()];
}

/** Counts the pass for all whose room the granted call takes. */
function notePasses(
  line: readonly Waiter[],
  others: readonly Waiter[],
  granted: readonly Account[],
  find: FindAccount,
): readonly Waiter[] {
  const isPassed = (waiter: Waiter): boolean => others.includes(waiter) && roomsTaken(waiter, granted, find).length > 0;
  return line.map((waiter) => (isPassed(waiter) ? { ...waiter, passed: waiter.passed + 1 } : waiter));
}

/** Of the accounts as they are with the granted call: those on which the waiter does not fit beside it. */
function roomsTaken(waiter: Waiter, granted: readonly Account[], find: FindAccount): Account[] {
  const need = needOf(waiter, accountsOf(waiter, find));
  return granted.filter((account) => waiter.blockedOn.includes(account.id) && !covers(freeOn(account), need));
}

/** The line is kept on the last account. */
function withLine(accounts: readonly Account[], waiters: readonly Waiter[]): readonly Account[] {
  return accounts.map((account, index) =>
    index === accounts.length - 1 && account.waiters.length + waiters.length > 0
      ? { ...account, waiters: [...waiters] }
      : account,
  );
}

/** The line without those that wait no more, because their turn ended or is held. */
export function withoutWaiters(top: Account, isGone: (waiter: Waiter) => boolean): Account {
  if (!top.waiters.some(isGone)) return top;
  return { ...top, waiters: top.waiters.filter((waiter) => !isGone(waiter)) };
}
