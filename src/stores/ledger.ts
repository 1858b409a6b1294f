import { randomUUID } from "node:crypto";
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
  reserve,
  settle,
} from "../budget/index.ts";
import { InvariantError } from "../errors/index.ts";
import type { AgentKey, InboxItem, Timer } from "../state/index.ts";
import { changeTimers } from "./account-timers.ts";
import type { BudgetMove } from "./batch.ts";
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
  /** Accounts from under which others were moved. */
  readonly #left = new Set<string>();

  constructor(tables: Tables, key: AgentKey, rootAgentId: string, { now, steady }: Moment) {
    this.#tables = tables;
    this.#key = key;
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
      return this.#putAll(settle(this.#chain(move.settlement.reservation.accountId), move.settlement));
    }
    if (move.type === "background") return this.#moveToBackground(move.accountId, move.childAccountIds);
    this.#putAll(countActivity(this.#chain(move.accountId), move.isActive, this.#now));
  }

  #moveToBackground(accountId: string, childAccountIds: readonly string[]): void {
    const turn = this.#find(accountId);
    const children = childAccountIds.flatMap((id) => this.#find(id) ?? []).filter((one) => one.parentId === accountId);
    if (!turn || children.length === 0) return;
    const above = turn.parentId === null ? undefined : this.#find(turn.parentId);
    const { turn: rest, background, children: moved } = moveToBackground(turn, children, above, this.#now);
    this.#putAll([rest, ...(background ? [background] : []), ...moved]);
    // Whoever waits here may have been moved: it asks again where it is now.
    this.#left.add(accountId);
  }

  reserve(ask: ReservationAsk): Judgement {
    const outcome = reserve(this.#chain(ask.accountId), ask, this.#now, this.#wallNow);
    if (outcome.granted) {
      this.#putAll(outcome.accounts);
      const { reservation, last } = outcome;
      return { granted: true, reservation, ...(last ? { last } : {}) };
    }
    if (outcome.reason === "mustWait") this.#wait(outcome.accountId, ask.agentId);
    return outcome;
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
    const posted: string[] = [];
    const timers: Timer[] = [];
    for (const id of this.#changed) {
      const current = this.#current.get(id);
      if (!current) continue;
      const stored = this.#stored.get(id);
      const noted = newWarnings(current, this.#now);
      warnings.push(...noted.warnings);
      let { account } = noted;
      if (stored && account.waiters.length > 0 && (this.#left.has(id) || isFreer(account, stored))) {
        posted.push(...this.#wake(account));
        account = { ...account, waiters: [] };
      }
      this.#tables.putAccount(this.#key.tenant, this.#rootAgentId, account);
      accounts.push(account);
      timers.push(...changeTimers(this.#tables, this.#key.tenant, stored, account));
    }
    return { warnings, posted, timers, accounts };
  }

  #wake(account: Account): string[] {
    const item: InboxItem = {
      kind: "budget.freed",
      key: `budget.freed:${account.id}:${randomUUID()}`,
      at: this.#wallNow,
    };
    for (const agentId of account.waiters) this.#tables.addToInbox({ tenant: this.#key.tenant, agentId }, item);
    return account.waiters;
  }

  #wait(accountId: string, agentId: string): void {
    const account = this.#find(accountId);
    if (account && !account.waiters.includes(agentId)) {
      this.#put({ ...account, waiters: [...account.waiters, agentId] });
    }
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

/** Whether less is set aside than before, so that who waits may ask again. */
function isFreer(account: Account, stored: Account): boolean {
  return account.reserved.tokens < stored.reserved.tokens || account.reserved.costMicros < stored.reserved.costMicros;
}
