import {
  type Account,
  activeUntil,
  type BudgetWarning,
  countActivity,
  countToolCall,
  type NewAccount,
  newWarnings,
  openAccount,
  type Reservation,
  type ReservationAsk,
  reserve,
  settle,
} from "../budget/index.ts";
import { InvariantError } from "../errors/index.ts";
import type { AgentKey, InboxItem, Timer } from "../state/index.ts";
import type { BudgetMove } from "./batch.ts";
import type { Tables } from "./tables.ts";

export type Judgement =
  | { readonly granted: true; readonly reservation: Reservation | null }
  | {
      readonly granted: false;
      readonly reason: "budget" | "mustWait";
      readonly accountId: string;
      readonly limit: import("../budget/index.ts").LimitName;
    };

/**
 * The accounts as one batch sees them.
 * Owns: the accounts read and changed during the batch. Does not own: the rows, which it writes back once, in `flush`.
 *
 * Invariants
 * 1. Every account is read at most once and written at most once per batch.
 * 2. A change reaches the account and all above it, or none.
 */
export class Ledger {
  readonly #tables: Tables;
  readonly #key: AgentKey;
  readonly #rootAgentId: string;
  readonly #now: number;
  readonly #read = new Map<string, Account>();
  readonly #changed = new Set<string>();
  readonly #fresh = new Set<string>();

  constructor(tables: Tables, key: AgentKey, rootAgentId: string, now: number) {
    this.#tables = tables;
    this.#key = key;
    this.#rootAgentId = rootAgentId;
    this.#now = now;
  }

  open(account: NewAccount): void {
    if (this.#find(account.id)) return;
    this.#put(openAccount(account));
    this.#fresh.add(account.id);
  }

  apply(move: BudgetMove): void {
    if (move.type === "open") return this.open(move.account);
    if (move.type === "settle") {
      return this.#putAll(settle(this.#chain(move.settlement.reservation.accountId), move.settlement));
    }
    this.#putAll(countActivity(this.#chain(move.accountId), move.delta, this.#now));
  }

  reserve(ask: ReservationAsk): Judgement {
    const outcome = reserve(this.#chain(ask.accountId), ask, this.#now);
    if (outcome.granted) {
      this.#putAll(outcome.accounts);
      return { granted: true, reservation: outcome.reservation };
    }
    if (outcome.reason === "mustWait") this.#wait(outcome.accountId, ask.agentId);
    return outcome;
  }

  countToolCall(accountId: string, agentId: string): Judgement {
    const outcome = countToolCall(this.#chain(accountId), agentId);
    if (!outcome.granted) return { ...outcome, reason: "budget" };
    this.#putAll(outcome.accounts);
    return { granted: true, reservation: null };
  }

  /** Writes the changed accounts, sets their timers, and wakes those who waited for room that is now free. */
  flush(): { warnings: BudgetWarning[]; posted: string[]; timers: Timer[] } {
    const warnings: BudgetWarning[] = [];
    const posted: string[] = [];
    const timers: Timer[] = [];
    for (const id of this.#changed) {
      const before = this.#read.get(id);
      if (!before) continue;
      const noted = newWarnings(before);
      warnings.push(...noted.warnings);
      posted.push(...this.#wakeWaiters(noted.account));
      const account = { ...noted.account, waiters: this.#stillWaiting(noted.account) };
      this.#tables.putAccount(this.#key.tenant, this.#rootAgentId, account);
      timers.push(...this.#setTimers(account));
    }
    return { warnings, posted, timers };
  }

  #stillWaiting(account: Account): string[] {
    return this.#isFreer(account) ? [] : account.waiters;
  }

  #wakeWaiters(account: Account): string[] {
    if (!this.#isFreer(account)) return [];
    const item: InboxItem = { kind: "budget.freed", key: `budget.freed:${account.id}`, at: this.#now };
    for (const agentId of account.waiters) this.#tables.addToInbox({ tenant: this.#key.tenant, agentId }, item);
    return account.waiters;
  }

  #isFreer(account: Account): boolean {
    if (account.waiters.length === 0) return false;
    const stored = this.#tables.account(this.#key.tenant, account.id);
    return (
      stored !== undefined &&
      (account.reserved.tokens < stored.reserved.tokens || account.reserved.costMicros < stored.reserved.costMicros)
    );
  }

  #setTimers(account: Account): Timer[] {
    const timers: Timer[] = [];
    const timer = (limit: Timer["limit"], dueAt: number): void => {
      const set: Timer = {
        tenant: this.#key.tenant,
        agentId: account.agentId,
        id: `${limit}:${account.id}`,
        dueAt,
        accountId: account.id,
        limit,
      };
      this.#tables.setTimer(set);
      timers.push(set);
    };
    const { deadlineAt, maxActiveMs } = account.limits;
    if (deadlineAt !== undefined && this.#fresh.has(account.id)) timer("deadlineAt", deadlineAt);
    if (maxActiveMs !== undefined) {
      const until = activeUntil(account);
      if (until !== undefined) timer("maxActiveMs", until);
      else this.#tables.clearTimer({ tenant: this.#key.tenant, agentId: account.agentId }, `maxActiveMs:${account.id}`);
    }
    return timers;
  }

  #wait(accountId: string, agentId: string): void {
    const account = this.#find(accountId);
    if (account && !account.waiters.includes(agentId)) {
      this.#put({ ...account, waiters: [...account.waiters, agentId] });
    }
  }

  #find(id: string): Account | undefined {
    const known = this.#read.get(id);
    if (known) return known;
    const stored = this.#tables.account(this.#key.tenant, id);
    if (stored) this.#read.set(id, stored);
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
    this.#read.set(account.id, account);
    this.#changed.add(account.id);
  }

  #putAll(accounts: readonly Account[]): void {
    for (const account of accounts) this.#put(account);
  }
}
