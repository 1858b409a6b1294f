import type { Account } from "./account.ts";
import type { ReservedAmounts } from "./amounts.ts";
import { MAX_PASSES, type Waiter } from "./waiter.ts";
import {
  accountsOf,
  covers,
  type FindAccount,
  freeOn,
  isAnythingReserved,
  isExhaustedFor,
  isOverdue,
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
export function wakeNext(line: readonly Waiter[], find: FindAccount, now: number): Woken {
  const claims = new Claims();
  const holding: Waiter[] = [];
  const agentIds = new Set<string>();
  const waiters: Waiter[] = [];
  for (const waiter of line) {
    if (isOverdue(waiter, now)) continue;
    const accounts = accountsOf(waiter, find);
    const isExhausted = isExhaustedFor(waiter, accounts);
    const need = needOf(waiter, accounts);
    const isNext = isExhausted || (claims.cover(accounts, need) && !mustFollow(waiter, need, holding, claims, find));
    if (isNext && !isExhausted) claims.add(accounts, need);
    if (!isNext && waiter.passed >= MAX_PASSES) holding.push(waiter);
    if (!isNext || waiter.wokenAt !== null) {
      waiters.push(waiter);
      continue;
    }
    waiters.push({ ...waiter, wokenAt: now });
    agentIds.add(waiter.agentId);
  }
  return { waiters, agentIds: [...agentIds] };
}

/** Whether it would have to wait behind one before it that does not fit yet (`reserveInTurn`). */
function mustFollow(
  waiter: Waiter,
  need: ReservedAmounts,
  holding: readonly Waiter[],
  claims: Claims,
  find: FindAccount,
): boolean {
  return holding.some((one) => {
    if (one.agentId === waiter.agentId) return false;
    const shared = accountsOf(one, find).filter(({ id }) => waiter.blockedOn.includes(id));
    const ofOne = needOf(one, accountsOf(one, find));
    return shared.some(
      (account) => (one.wokenAt !== null || isAnythingReserved(account)) && !claims.coverBeside(account, need, ofOne),
    );
  });
}

/** Room that is kept for those who were told of it. */
class Claims {
  readonly #claimed = new Map<string, ReservedAmounts>();

  cover(accounts: readonly Account[], need: ReservedAmounts): boolean {
    return accounts.every((account) => covers(this.#left(account), need));
  }

  coverBeside(account: Account, need: ReservedAmounts, other: ReservedAmounts): boolean {
    return covers(this.#left(account), sum(need, other));
  }

  add(accounts: readonly Account[], need: ReservedAmounts): void {
    for (const { id } of accounts) this.#claimed.set(id, sum(this.#claimed.get(id) ?? nothing, need));
  }

  #left(account: Account): ReservedAmounts {
    const free = freeOn(account);
    const claimed = this.#claimed.get(account.id) ?? nothing;
    return { tokens: free.tokens - claimed.tokens, costMicros: free.costMicros - claimed.costMicros };
  }
}

const nothing: ReservedAmounts = { tokens: 0, costMicros: 0 };

function sum(one: ReservedAmounts, other: ReservedAmounts): ReservedAmounts {
  return { tokens: one.tokens + other.tokens, costMicros: one.costMicros + other.costMicros };
}
