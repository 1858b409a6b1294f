import { type MetLimit, metLimit, type Moment, nothingReserved } from "./account.ts";
import { costOfCall, gateOf, isUnpriced, promptOf, reserve, type ReserveOutcome } from "./reserve.ts";
import type { Account, ReservationAsk, ReservedAmounts, Waiter } from "./schemas.ts";

/**
 * The order in which waiting calls are granted: pure functions on the queue of a tree's top account. A call waits if reservations of
 * other calls leave too little.
 *
 * Invariants
 * 1. The queue is in the order of first asks; a call that asks again keeps its position, even if its size has changed.
 * 2. No call is passed more than `MAX_PASSES` times while amounts are reserved where it waits, or are kept free there for a woken one:
 *    from then on later calls must wait behind it. Otherwise a call that fits is granted.
 * 3. A waiter that would be granted if it asked now has been woken (`wokenAt`), or the amount is kept free for a woken one before it; if
 *    that one does not fit after all, this one is woken with the next settlement. The same holds for a waiter that would be refused
 *    finally.
 * 4. An ask that has to wait wakes no other waiter, so that asks do not trigger each other. Waiters are woken only by events that happen
 *    once per call: it is granted, settled or refused finally, or leaves the queue.
 * 5. Calls of one agent never wait behind each other: all of them ask when the agent is woken.
 */

/** The outcome of an ask, the accounts and the queue after it, and whether other waiters may be granted now. */
export interface QueuedOutcome {
  readonly outcome: ReserveOutcome;
  readonly accounts: readonly Account[];
  /** The same array as before if nothing changes. */
  readonly queue: readonly Waiter[];
  readonly mayWake: boolean;
}

/** The queue of the chain's top account, and a lookup of its waiters' accounts. */
export interface QueueOf {
  readonly queue: readonly Waiter[];
  readonly find: FindAccount;
}

/** Reserves like `reserve`, but behind older waiters that were passed often enough. The claims of woken waiters expire by steady time. */
export function reserveQueued(
  chain: readonly Account[],
  ask: ReservationAsk,
  { queue: all, find }: QueueOf,
  moment: Moment,
): QueuedOutcome {
  const outcome = reserve(chain, ask, moment);
  const queue = withoutOverdue(all, moment);
  const isShorter = queue !== all;
  const own = queue.find((one) => one.ask.key === ask.key);
  const wait = (blockedOn: readonly string[], met: MetLimit): QueuedOutcome => {
    const waiting = waiterOf(chain, ask, { blockedOn, moment, known: own ?? (queue.at(-1)?.place ?? 0) + 1 });
    const entered = own ? queue.map((one) => (one === own ? waiting : one)) : [...queue, waiting];
    const waits = { granted: false, reason: "mustWait", blockedOn } as const;
    return { outcome: { ...waits, ...met }, accounts: [], queue: entered, mayWake: isShorter };
  };
  if (outcome.granted) {
    const older = olderThan(own, queue, ask.agentId);
    const passes = older.flatMap((waiter) => passOf(waiter, outcome.accounts, find, moment) ?? []);
    const [first, ...more] = passes.flatMap((pass) => keptFor(pass, chain, older));
    if (first) {
      const ids = [first, ...more].map(({ account }) => account.id);
      return wait(ids, metLimit(first.account, first.limit, moment));
    }
    const mayWake = isShorter || own !== undefined || (ask.opensStep && outcome.accounts.some(hasNoStepLeft));
    return { outcome, accounts: outcome.accounts, queue: afterGrant(queue, own, passes), mayWake };
  }
  if (outcome.reason === "mustWait") {
    const { accountId, limit, used, max } = outcome;
    return wait(outcome.blockedOn, { accountId, limit, used, max });
  }
  const rest = own ? queue.filter((one) => one !== own) : queue;
  return { outcome, accounts: [], queue: rest, mayWake: rest !== all };
}

/** Waiters of other agents before this one; all of them if it does not wait yet. */
function olderThan(own: Waiter | undefined, queue: readonly Waiter[], agentId: string): readonly Waiter[] {
  if (queue.length === 0 || queue[0] === own) return [];
  const older = own ? queue.slice(0, queue.indexOf(own)) : queue;
  return older.filter(({ ask }) => ask.agentId !== agentId);
}

function afterGrant(queue: readonly Waiter[], own: Waiter | undefined, passes: readonly Pass[]): readonly Waiter[] {
  if (!own && passes.length === 0) return queue;
  const passed = new Set(passes.map(({ waiter }) => waiter));
  return queue.filter((one) => one !== own).map((one) => (passed.has(one) ? { ...one, passed: one.passed + 1 } : one));
}

function hasNoStepLeft({ limits, used }: Account): boolean {
  const { maxSteps = Number.POSITIVE_INFINITY, maxTreeSteps = Number.POSITIVE_INFINITY } = limits;
  return used.steps >= maxSteps || used.treeSteps >= maxTreeSteps;
}

interface Waits {
  readonly blockedOn: readonly string[];
  readonly moment: Moment;
  /** The previous waiter, or the position of a new one. */
  readonly known: Waiter | number;
}

function waiterOf(
  chain: readonly Account[],
  { finalAnswer: _last, ...ask }: ReservationAsk,
  { blockedOn, moment, known }: Waits,
): Waiter {
  const least = leastOf(chain, ask);
  const amounts = { ask, least, need: needOf({ ask }, chain, moment) ?? least, wokenAt: null };
  if (typeof known === "number") return { ...amounts, place: known, blockedOn: [...blockedOn], passed: 0 };
  const { place, passed } = known;
  return { ...amounts, place, blockedOn: [...new Set([...known.blockedOn, ...blockedOn])], passed };
}

/** A waiter that does not fit on these accounts after the call is granted. */
interface Pass {
  readonly waiter: Waiter;
  /** The limit that is too small for it, by account id. */
  readonly short: ReadonlyMap<string, "maxTokens" | "maxCostMicros">;
}

function passOf(waiter: Waiter, granted: readonly Account[], find: FindAccount, moment: Moment): Pass | undefined {
  const shared = granted.filter(({ id }) => waiter.blockedOn.includes(id));
  if (shared.length === 0) return undefined;
  const chain = chainOf(waiter, (id) => granted.find((account) => account.id === id) ?? find(id));
  const [only] = shared.length === 1 ? shared : [];
  const hasNotTheLeast = only && !covers(freeOn(only), waiter.least) && mustSurelyWait(waiter, chain, moment);
  const need = hasNotTheLeast ? waiter.least : needOf(waiter, chain, moment);
  if (!need) return undefined;
  const taken = shared.filter((account) => !covers(freeOn(account), need));
  if (taken.length === 0) return undefined;
  const shortOn = (account: Account) => (freeOn(account).tokens < need.tokens ? "maxTokens" : "maxCostMicros");
  return { waiter, short: new Map(taken.map((account) => [account.id, shortOn(account)])) };
}

/** The accounts that are kept free for a waiter that was passed often enough: a later call must wait although it fits. */
function keptFor({ waiter, short }: Pass, chain: readonly Account[], older: readonly Waiter[]) {
  if (waiter.passed < MAX_PASSES) return [];
  const isAwaited = ({ id }: Account): boolean =>
    older.some(({ wokenAt, blockedOn }) => wokenAt !== null && blockedOn.includes(id));
  return chain.flatMap((account) => {
    const limit = short.get(account.id);
    return limit && (isAnythingReserved(account) || isAwaited(account)) ? [{ account, limit }] : [];
  });
}

/** How many later calls may pass a waiting call; from then on they wait behind it. */
export const MAX_PASSES = 8;

/** How long an amount is kept free for a woken waiter that does not ask, in milliseconds; the waiter is then removed. */
export const WAKE_CLAIM_MS = 10_000;

/** When the first claim of a woken waiter expires; `undefined` if none is woken. */
export function claimsEndAt(queue: readonly Waiter[]): number | undefined {
  let first: number | undefined;
  for (const { wokenAt } of queue) {
    if (wokenAt !== null && (first === undefined || wokenAt < first)) first = wokenAt;
  }
  return first === undefined ? undefined : first + WAKE_CLAIM_MS + 1;
}

/** The queue without the waiters whose turn ended or is held; the same array if there are none. */
export function withoutWaiters(queue: readonly Waiter[], isGone: (waiter: Waiter) => boolean): readonly Waiter[] {
  return queue.some(isGone) ? queue.filter((waiter) => !isGone(waiter)) : queue;
}

export type FindAccount = (id: string) => Account | undefined;

/** The limits minus used and reserved amounts; infinite without a limit, below 0 after an overrun. */
export function freeOn(account: Account): ReservedAmounts {
  const { tokens, costMicros } = leftOn(account);
  return { tokens: tokens - account.reserved.tokens, costMicros: costMicros - account.reserved.costMicros };
}

/** The limits minus used amounts. */
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
export function chainOf({ ask }: { readonly ask: Pick<ReservationAsk, "accountId"> }, find: FindAccount): Account[] {
  const chain: Account[] = [];
  for (let next = find(ask.accountId); next; next = next.parentId === null ? undefined : find(next.parentId)) {
    chain.push(next);
  }
  return chain;
}

/** The reservation that a call would get if nothing else were reserved; `undefined` if it would be refused. */
export function needOf(
  { ask }: Pick<Waiter, "ask">,
  accounts: readonly Account[],
  moment: Moment,
): ReservedAmounts | undefined {
  const free = accounts.map((account) => ({ ...account, reserved: nothingReserved }));
  const outcome = reserve(free, ask, moment);
  if (!outcome.granted) return undefined;
  const { tokens, costMicros } = outcome.reservation;
  return { tokens, costMicros };
}

/** The reservation of the call with the minimum output. */
export function leastOf(chain: readonly Account[], ask: ReservationAsk): ReservedAmounts {
  const { outputTokens, minimumOutputTokens } = ask;
  const promptTokens = promptOf(chain, ask);
  const output = Math.min(outputTokens, minimumOutputTokens);
  return { tokens: promptTokens + output, costMicros: costOfCall({ ...ask, promptTokens }, output) };
}

/**
 * Whether the call surely has to wait: it does not fit now, and no limit refuses it. Compares a few integers, which is enough for most of
 * a long queue.
 */
export function mustSurelyWait({ ask, least, need }: Waiter, chain: readonly Account[], moment: Moment): boolean {
  let hasRoom = true;
  let isClamped = false;
  for (const account of chain) {
    if (isUnpriced(account, ask) || gateOf(account, ask, moment)) return false;
    const left = leftOn(account);
    if (!covers(left, least)) return false;
    if (!covers(left, need)) isClamped = true;
    if (!covers(freeOn(account), need)) hasRoom = false;
  }
  return !hasRoom && (!isClamped || chain.some((account) => !covers(freeOn(account), least)));
}

/** Whether it was woken so long ago that nothing is kept free for it any more. */
export function isOverdue({ wokenAt }: Waiter, { steady }: Moment): boolean {
  // A time in the future counts too: the tree was imported from another store.
  return wokenAt !== null && Math.abs(steady - wokenAt) > WAKE_CLAIM_MS;
}

/** The queue without woken waiters that did not ask in time; the same array if there are none. */
export function withoutOverdue(queue: readonly Waiter[], moment: Moment): readonly Waiter[] {
  return withoutWaiters(queue, (waiter) => isOverdue(waiter, moment));
}
