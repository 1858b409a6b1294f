import {
  type Account,
  type BudgetWarning,
  countActivity,
  countToolCall,
  type MetLimit,
  type NewAccount,
  moveToBackground,
  newWarnings,
  openAccount,
  type Reservation,
  type ReservationAsk,
  reserveInTurn,
  settle,
  type Waiter,
  wakeNext,
  withoutWaiters,
} from "../budget/index.ts";
import { InvariantError } from "../errors/index.ts";
import type { AgentKey, InboxItem, Timer } from "../state/index.ts";
import { changeTimers } from "./account-timers.ts";
import type { Batch, BudgetMove } from "./batch.ts";
import type { Moment } from "./moment.ts";
import type { Tables } from "./tables.ts";

export type Judgement =
  | { readonly granted: true; readonly reservation: Reservation | null; readonly last?: MetLimit }
  | ({ readonly granted: false; readonly reason: "budget" | "mustWait" | "unpriced" } & MetLimit);

/**
 * The accounts as one batch sees them.
 * Owns: the accounts read and changed during the batch. Does not own: the rows, which it writes back once, in `flush`.
 *
 * Invariants
 * 1. Every account is read at most once and written at most once per batch.
 * 2. A change reaches the account and all above it, or none.
 * 3. Whoever waits and may be granted by what the batch has changed is told by it (`wakeNext`).
 */
export class Ledger {
  readonly #tables: Tables;
  readonly #key: AgentKey;
  readonly #rootAgentId: string;
  /** Steady time: by it work is counted. */
  readonly #now: number;
  readonly #wallNow: number;
  readonly #stored = new Map<string, Account>();
  readonly #current = new Map<string, Account>();
  readonly #changed = new Set<string>();
  /** Accounts at the top of trees in which somebody who waits may be granted now. */
  readonly #freed = new Set<string>();
  /** The same where all who wait have to ask again, because accounts were moved. */
  readonly #disbanded = new Set<string>();
  readonly #batchId: string;

  constructor(tables: Tables, { id, key }: Pick<Batch, "id" | "key">, rootAgentId: string, { now, steady }: Moment) {
    this.#tables = tables;
    this.#key = key;
    this.#batchId = id;
    this.#rootAgentId = rootAgentId;
    this.#now = steady;
    this.#wallNow = now;
  }

  open(account: NewAccount): void {
    if (this.#find(account.id)) return;
    this.#put(openAccount(account));
  }

  apply(move: BudgetMove): void {
    if (move.type === "open") return this.open(move.account);
    if (move.type === "settle") {
      const chain = this.#chain(move.settlement.reservation.accountId);
      this.#mayWake(chain);
      return this.#putAll(settle(chain, move.settlement));
    }
    if (move.type === "background") return this.#moveToBackground(move.accountId, move.childAccountIds);
    this.#putAll(countActivity(this.#chain(move.accountId), move.isActive, this.#now));
  }

  #moveToBackground(accountId: string, childAccountIds: readonly string[]): void {
    const chain = this.#find(accountId) ? this.#chain(accountId) : [];
    const [turn, above] = chain;
    const children = childAccountIds.flatMap((id) => this.#find(id) ?? []).filter((one) => one.parentId === accountId);
    if (!turn || children.length === 0) return;
    const { turn: rest, background, children: moved } = moveToBackground(turn, children, above, this.#now);
    this.#putAll([rest, ...(background ? [background] : []), ...moved]);
    // Whoever waits may have been moved: it asks again where it is now.
    const top = chain.at(-1);
    if (top) this.#disbanded.add(top.id);
  }

  reserve(ask: ReservationAsk): Judgement {
    const chain = this.#chain(ask.accountId);
    const find = (id: string): Account | undefined => this.#find(id);
    const { outcome, accounts, mayWake } = reserveInTurn(chain, ask, find, this.#now, this.#wallNow);
    this.#putAll(accounts);
    if (mayWake) this.#mayWake(chain);
    if (!outcome.granted) return outcome;
    const { reservation, last } = outcome;
    return { granted: true, reservation, ...(last ? { last } : {}) };
  }

  /** Takes those out of the line who wait on the account's tree and match; they are not told. */
  leave(accountId: string, isGone: (waiter: Waiter) => boolean): void {
    if (!this.#find(accountId)) return;
    const chain = this.#chain(accountId);
    const top = chain.at(-1);
    const rest = top && withoutWaiters(top, isGone);
    if (!rest || rest === top) return;
    this.#put(rest);
    this.#mayWake(chain);
  }

  countToolCall(accountId: string, agentId: string): Judgement {
    const outcome = countToolCall(this.#chain(accountId), agentId, this.#now);
    if (!outcome.granted) return { ...outcome, reason: "budget" };
    this.#putAll(outcome.accounts);
    return { granted: true, reservation: null };
  }

  /** Writes the changed accounts, sets their timers, and wakes those who waited for room that is now free. */
  flush(): { warnings: BudgetWarning[]; posted: string[]; timers: Timer[]; accounts: Account[] } {
    const accounts: Account[] = [];
    const warnings: BudgetWarning[] = [];
    const timers: Timer[] = [];
    const posted = [...this.#freed, ...this.#disbanded].flatMap((topId) => this.#wake(topId));
    for (const id of this.#changed) {
      const current = this.#current.get(id);
      if (!current) continue;
      const stored = this.#stored.get(id);
      const { account, warnings: reached } = newWarnings(current, this.#now);
      warnings.push(...reached);
      this.#tables.putAccount(this.#key.tenant, this.#rootAgentId, account);
      accounts.push(account);
      timers.push(...changeTimers(this.#tables, this.#key.tenant, stored, account));
    }
    return { warnings, posted, timers, accounts };
  }

  #mayWake(chain: readonly Account[]): void {
    const top = chain.at(-1);
    if (top) this.#freed.add(top.id);
  }

  #wake(topId: string): string[] {
    const top = this.#find(topId);
    if (!top || top.waiters.length === 0) return [];
    const { waiters, agentIds } = this.#disbanded.has(topId)
      ? { waiters: [], agentIds: [...new Set(top.waiters.map(({ ask }) => ask.agentId))] }
      : wakeNext(top.waiters, (id) => this.#find(id), this.#now, this.#wallNow);
    if (agentIds.length > 0 || waiters.length < top.waiters.length) this.#put({ ...top, waiters: [...waiters] });
    const item: InboxItem = { kind: "budget.freed", key: `budget.freed:${this.#batchId}`, at: this.#wallNow };
    for (const agentId of agentIds) this.#tables.addToInbox({ tenant: this.#key.tenant, agentId }, item);
    return [...agentIds];
  }

  #find(id: string): Account | undefined {
    const known = this.#current.get(id);
    if (known) return known;
    const stored = this.#tables.account(this.#key.tenant, id);
    if (stored) {
      this.#stored.set(id, stored);
      this.#current.set(id, stored);
    }
    return stored;
  }

  #chain(id: string): Account[] {
    const chain: Account[] = [];
    for (let next: string | null = id; next !== null; ) {
      const account = this.#find(next);
      if (!account)
        throw new InvariantError(`account ${next} is not open, though agent ${this.#key.agentId} spends on it`);
      chain.push(account);
      next = account.parentId;
    }
    return chain;
  }

  #put(account: Account): void {
    this.#current.set(account.id, account);
    this.#changed.add(account.id);
  }

  #putAll(accounts: readonly Account[]): void {
    for (const account of accounts) this.#put(account);
  }
}
