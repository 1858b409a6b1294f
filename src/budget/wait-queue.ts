import { type Account, type MetLimit, metLimit } from "./account.ts";
import { type ReservationAsk, type ReserveOutcome, reserve } from "./reserve.ts";
import { MAX_PASSES, type Waiter, chainOf, covers, type FindAccount, freeOn, isAnythingReserved, isSurelyHeld, leastOf, needOf, withoutOverdue } from "./waiter.ts";

/**
 * The order in which calls are granted that wait for others' reservations: pure functions over the line of a tree's top account.
 *
 * Invariants
 * 1. The line is in the order of first asks; a call that asks again keeps its place, whatever its size has become.
 * 2. Nobody is passed more than `MAX_PASSES` times while something is reserved where it waits, or is kept there for one that
 *    was told: from then on calls that came later must wait behind it. Otherwise a call that fits is granted.
 * 3. Whoever would be granted now, were it to ask, has been told (`wokenAt`), or the room is kept for one before it that
 *    was told; where that one finds no room after all, with the next settlement. So has whoever would be refused for good.
 * 4. To be told to wait wakes nobody: asks do not chase each other. Somebody is told only by what happens once to a call: it
 *    is granted, settled or refused for good, or leaves the line.
 * 5. Calls of one agent never wait behind each other: all of them ask when the agent is woken.
 */

/** What became of an ask, the accounts and the line it has changed, and whether others may be granted now that could not before. */
export interface ReservedInTurn {
  readonly outcome: ReserveOutcome;
  readonly accounts: readonly Account[];
  /** The very one that was given where nothing of it changes. */
  readonly line: readonly Waiter[];
  readonly mayWake: boolean;
}

/** The line as it is kept for the top of the chain, and the accounts of all who wait in it. */
export interface LineOf {
  readonly line: readonly Waiter[];
  readonly find: FindAccount;
}

/**
 * Reserves as `reserve` does, but behind those that wait longer and were passed often enough. `now`: steady time, by which
 * working time is told and how long room is kept; deadlines are told by `wallNow`.
 */
export function reserveInTurn(
  chain: readonly Account[],
  ask: ReservationAsk,
  { line: all, find }: LineOf,
  now: number,
  wallNow: number = now,
): ReservedInTurn {
  const outcome = reserve(chain, ask, now, wallNow);
  const line = withoutOverdue(all, now);
  const isShorter = line !== all;
  const own = line.find((one) => one.ask.key === ask.key);
  const wait = (blockedOn: readonly string[], met: MetLimit): ReservedInTurn => {
    const waiting = waiterOf(chain, ask, { blockedOn, now, wallNow, before: own ?? (line.at(-1)?.place ?? 0) + 1 });
    const entered = own ? line.map((one) => (one === own ? waiting : one)) : [...line, waiting];
    const waits = { granted: false, reason: "mustWait", blockedOn } as const;
    return { outcome: { ...waits, ...met }, accounts: [], line: entered, mayWake: isShorter };
  };
  if (outcome.granted) {
    const before = othersBefore(line, own, ask.agentId);
    const passes = before.flatMap((waiter) => passOf(waiter, outcome.accounts, find, { now, wallNow }) ?? []);
    const [first, ...more] = passes.flatMap((pass) => mustFollow(pass, chain, before, { now, wallNow }));
    const heldOn = [first, ...more].flatMap((one) => one?.accountId ?? []);
    if (first) return wait(heldOn, first);
    const mayWake = isShorter || own !== undefined || (ask.opensStep && outcome.accounts.some(hasNoStepLeft));
    return { outcome, accounts: outcome.accounts, line: afterGrant(line, own, passes), mayWake };
  }
  if (outcome.reason === "mustWait") {
    const { accountId, limit, used, max } = outcome;
    return wait(outcome.blockedOn, { accountId, limit, used, max });
  }
  const rest = own ? line.filter((one) => one !== own) : line;
  return { outcome, accounts: [], line: rest, mayWake: rest !== all };
}

function othersBefore(line: readonly Waiter[], own: Waiter | undefined, agentId: string): readonly Waiter[] {
  if (line.length === 0 || line[0] === own) return [];
  const before = own ? line.slice(0, line.indexOf(own)) : line;
  return before.filter(({ ask }) => ask.agentId !== agentId);
}

function afterGrant(line: readonly Waiter[], own: Waiter | undefined, passes: readonly Pass[]): readonly Waiter[] {
  if (!own && passes.length === 0) return line;
  const passed = new Set(passes.map(({ waiter }) => waiter));
  return line.filter((one) => one !== own).map((one) => (passed.has(one) ? { ...one, passed: one.passed + 1 } : one));
}

function hasNoStepLeft({ limits, used }: Account): boolean {
  const { maxSteps = Number.POSITIVE_INFINITY, maxTreeSteps = Number.POSITIVE_INFINITY } = limits;
  return used.steps >= maxSteps || used.treeSteps >= maxTreeSteps;
}

interface Waits {
  readonly blockedOn: readonly string[];
  readonly now: number;
  readonly wallNow: number;
  /** The waiter as it was, or the place of a new one. */
  readonly before: Waiter | number;
}

function waiterOf(
  chain: readonly Account[],
  { finalAnswer: _last, ...ask }: ReservationAsk,
  { blockedOn, now, wallNow, before }: Waits,
): Waiter {
  const least = leastOf(chain, ask);
  const amounts = { ask, least, need: needOf({ ask }, chain, now, wallNow) ?? least, wokenAt: null };
  if (typeof before === "number") return { ...amounts, place: before, blockedOn: [...blockedOn], passed: 0 };
  const { place, passed } = before;
  return { ...amounts, place, blockedOn: [...new Set([...before.blockedOn, ...blockedOn])], passed };
}

/** A waiter for whom the granted call leaves no room beside it, on these accounts. */
interface Pass {
  readonly waiter: Waiter;
  readonly accountIds: readonly string[];
}

function passOf(
  waiter: Waiter,
  granted: readonly Account[],
  find: FindAccount,
  { now, wallNow }: Times,
): Pass | undefined {
  const shared = granted.filter(({ id }) => waiter.blockedOn.includes(id));
  if (shared.length === 0) return undefined;
  const chain = chainOf(waiter, (id) => granted.find((account) => account.id === id) ?? find(id));
  const [only] = shared.length === 1 ? shared : [];
  const hasNotTheLeast = only && !covers(freeOn(only), waiter.least) && isSurelyHeld(waiter, chain, now, wallNow);
  const need = hasNotTheLeast ? waiter.least : needOf(waiter, chain, now, wallNow);
  const taken = shared.filter((account) => need !== undefined && !covers(freeOn(account), need));
  return taken.length > 0 ? { waiter, accountIds: taken.map(({ id }) => id) } : undefined;
}

interface Times {
  readonly now: number;
  readonly wallNow: number;
}

/** The limits for which a call must wait though it fits: it would pass one that was passed often enough. */
function mustFollow(
  { waiter, accountIds }: Pass,
  chain: readonly Account[],
  before: readonly Waiter[],
  { now, wallNow }: Times,
): MetLimit[] {
  if (waiter.passed < MAX_PASSES) return [];
  const isAwaited = ({ id }: Account): boolean =>
    before.some(({ wokenAt, blockedOn }) => wokenAt !== null && blockedOn.includes(id));
  const held = chain.filter(
    (account) => accountIds.includes(account.id) && (isAnythingReserved(account) || isAwaited(account)),
  );
  return held.map((account) =>
    metLimit(account, account.limits.maxTokens === undefined ? "maxCostMicros" : "maxTokens", now, wallNow),
  );
}
