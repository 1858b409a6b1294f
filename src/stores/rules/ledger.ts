import {
  type Account,
  alarmOf,
  type BudgetWarning,
  countActivity,
  countToolCall,
  type LimitAlarm,
  type Limits,
  type Moment,
  moveToBackground,
  type NewAccount,
  newWarnings,
  openAccount,
  type ReservationAsk,
  reserve,
  type ReserveOutcome,
  reserveQueued,
  settle,
  type TimeLimit,
  type Waiter,
  wakeNext,
  withLimits,
  withoutWaiters,
} from "../../budget/index.ts";
import { InvariantError } from "../../errors/index.ts";
import type { AgentKey, InboxItem, Timer } from "../../state/index.ts";
import type { BudgetMove } from "./batch.ts";
import type { Judgement, OuterAnswer, OuterHold } from "./outer-answers.ts";
import type { AccountTimer, FiredTimer } from "./outcomes.ts";
import { noWaiters, ReservationQueues } from "./reservation-queues.ts";
import type { LedgerTables, Tables } from "./tables.ts";

/** The batch or command that changes the accounts; it belongs to an agent of their tree. */
interface LedgerCause {
  /** One cause wakes an agent at most once. */
  readonly id: string;
  readonly key: AgentKey;
  readonly rootAgentId: string;
}

/** The result of a flush. */
interface Flushed {
  /** Agents that were woken because their reservation may succeed now. */
  readonly posted: readonly string[];
  readonly timers: readonly Timer[];
  readonly accounts: readonly Account[];
}

/** An account as stored and as changed; `stored` is `undefined` if it was opened in between. */
interface ReadAccount {
  readonly stored: Account | undefined;
  account: Account;
  isChanged: boolean;
}

const noWarnings: readonly BudgetWarning[] = Object.freeze([]);

/**
 * The accounts as seen by one batch or command.
 * Owns: the accounts that were read and changed. Does not own: the rows, which it writes once, in `flush`.
 *
 * Invariants
 * 1. Every account is read at most once and written at most once.
 * 2. A change is applied to the account and all accounts above it, or to none.
 * 3. A waiting agent whose reservation may succeed after the change is woken (`wakeNext`).
 */
export class Ledger {
  readonly #tables: LedgerTables;
  readonly #cause: LedgerCause;
  readonly #moment: Moment;
  /** Created with the first account for which a call waits or has to wait. */
  #queues: ReservationQueues | undefined;
  readonly #read = new Map<string, ReadAccount>();
  /** Top accounts of trees in which a waiting reservation may succeed now. */
  #freed: Set<string> | undefined;
  /** Top accounts whose waiters must all ask again, because accounts were moved. */
  #disbanded: Set<string> | undefined;

  constructor(tables: LedgerTables, cause: LedgerCause, moment: Moment) {
    this.#tables = tables;
    this.#cause = cause;
    this.#moment = moment;
  }

  open(account: NewAccount): void {
    if (this.#find(account.id)) return;
    this.#put(openAccount(account, this.#moment.now));
  }

  apply(move: BudgetMove): void {
    if (move.type === "open") return this.open(move.account);
    if (move.type === "settle") {
      const chain = this.#chain(move.settlement.reservation.accountId);
      this.#mayWake(chain);
      return this.#putAll(settle(chain, move.settlement));
    }
    if (move.type === "background") return this.#moveToBackground(move.accountId, move.childAccountIds);
    this.#putAll(countActivity(this.#chain(move.accountId), move.isActive, this.#moment.steady));
  }

  #moveToBackground(accountId: string, childAccountIds: readonly string[]): void {
    const chain = this.#find(accountId) ? this.#chain(accountId) : [];
    const [turn, above] = chain;
    const children = childAccountIds.flatMap((id) => this.#find(id) ?? []).filter((one) => one.parentId === accountId);
    if (!turn || children.length === 0) return;
    const { turn: rest, background, children: moved } = moveToBackground(turn, children, above, this.#moment.steady);
    this.#putAll([rest, ...(background ? [background] : []), ...moved]);
    // A waiter's account may have moved, so all waiters ask again.
    const top = chain.at(-1);
    if (top) (this.#disbanded ??= new Set()).add(top.id);
  }

  /** Sets the limits of one account. Waiters in its tree may then succeed, or be refused. */
  setLimits(accountId: string, limits: Limits): void {
    const chain = this.#chain(accountId);
    this.#put(withLimits(this.#mustFind(accountId), limits));
    this.#mayWake(chain);
  }

  account(accountId: string): Account | undefined {
    return this.#find(accountId);
  }

  /** Puts an account as it is from now on. Waiters in its tree may then succeed, or be refused. */
  put(account: Account): void {
    this.#put(account);
    this.#mayWake(this.#chain(account.id));
  }

  /** Changes these accounts together; those that do not exist are left out. */
  changeAll(accountIds: readonly string[], change: (accounts: readonly Account[]) => readonly Account[]): void {
    const accounts = accountIds.flatMap((id) => this.#find(id) ?? []);
    this.#putAll(change(accounts));
    for (const { id } of accounts) this.#mayWake(this.#chain(id));
  }

  /** Ids of the accounts on which an ask for this account reserves. */
  chainIds(accountId: string): string[] {
    return this.#chain(accountId).map(({ id }) => id);
  }

  /**
   * Reserves on the account and all accounts above it, with the answer of the accounts above the root: a refusal there counts unless the
   * tree refuses finally, and a reservation there bounds the output.
   */
  reserve(ask: ReservationAsk, outer?: OuterAnswer): Judgement {
    if (!outer) return this.#reserve(ask);
    if (!outer.granted) {
      const own = reserve(this.#chain(ask.accountId), ask, this.#moment);
      return own.granted || own.reason === "mustWait" ? outer : this.#reserve(ask);
    }
    return withHold(this.#reserve(boundedBy(ask, outer)), outer);
  }

  #reserve(ask: ReservationAsk): Judgement {
    const chain = this.#chain(ask.accountId);
    const top = topOf(chain);
    const before = this.#queueOf(top);
    const find = (id: string): Account | undefined => this.#find(id);
    // Without waiters there is no order to respect.
    const alone = before.length === 0 ? reserve(chain, ask, this.#moment) : undefined;
    if (alone?.granted) return this.#granted(alone);
    const { outcome, queue, mayWake } = reserveQueued(chain, ask, { queue: before, find }, this.#moment);
    if (queue !== before) this.#openQueues().change(top, queue);
    if (mayWake) this.#free(top.id);
    return outcome.granted ? this.#granted(outcome) : outcome;
  }

  #granted({ accounts, reservation, last }: Extract<ReserveOutcome, { granted: true }>): Judgement {
    this.#putAll(accounts);
    return { granted: true, reservation, ...(last ? { last } : {}) };
  }

  /** Removes matching waiters from the queue of the account's tree, without waking other ones. */
  leave(accountId: string, isGone: (waiter: Waiter) => boolean): void {
    let top = this.#find(accountId);
    if (!top) return;
    while (top.parentId !== null) top = this.#mustFind(top.parentId);
    const queue = this.#queueOf(top);
    if (queue.length === 0 || !queue.some(isGone)) return;
    this.#openQueues().change(top, withoutWaiters(queue, isGone));
    this.#free(top.id);
  }

  /** The claims of woken waiters that did not ask have expired: other waiters may use the amount. */
  endClaims(accountId: string): void {
    const top = this.#find(accountId);
    if (!top) return;
    this.#openQueues().timerFired(top);
    this.#free(accountId);
  }

  countToolCall(accountId: string, agentId: string, outer?: OuterAnswer): Judgement {
    if (outer?.granted === false) return outer;
    const outcome = countToolCall(this.#chain(accountId), agentId, this.#moment);
    if (!outcome.granted) return { ...outcome, reason: "budget" };
    this.#putAll(outcome.accounts);
    return { granted: true, reservation: null };
  }

  /** Limits of the changed accounts that have passed 80 % without a warning so far; marks them as warned. */
  warn(): readonly BudgetWarning[] {
    let found: readonly BudgetWarning[] = noWarnings;
    for (const [id, { isChanged }] of this.#read) {
      const warnings = isChanged ? this.warnOf(id) : noWarnings;
      if (warnings.length > 0) found = [...found, ...warnings];
    }
    return found;
  }

  /** The same for one account, changed or not. */
  warnOf(accountId: string): readonly BudgetWarning[] {
    const current = this.#find(accountId);
    if (!current) return [];
    const { account, warnings } = newWarnings(current, this.#moment);
    if (warnings.length > 0) this.#put(account);
    return warnings;
  }

  /** Wakes waiters that may succeed now, writes the changes, and sets timers. */
  flush(): Flushed {
    const { key, rootAgentId } = this.#cause;
    const accounts: Account[] = [];
    const timers: Timer[] = [];
    const posted: string[] = [];
    for (const topId of this.#freed ?? []) posted.push(...this.#wake(topId));
    for (const topId of this.#disbanded ?? []) posted.push(...this.#wake(topId));
    for (const topId of this.#queues?.changed ?? []) {
      const top = this.#find(topId);
      const written = top && this.#queues?.write(top, rootAgentId);
      if (!written) continue;
      this.#put(written.account);
      timers.push(...written.timers);
    }
    for (const { stored, account, isChanged } of this.#read.values()) {
      if (!isChanged) continue;
      this.#tables.putAccount(key.tenant, rootAgentId, account);
      accounts.push(account);
      timers.push(...changeTimers(this.#tables, key.tenant, stored, account));
    }
    return { posted, timers, accounts };
  }

  /** Call it after `flush`: the account's turn has ended, so its deadline must not fire. */
  close(accountId: string): void {
    const account = this.#find(accountId);
    if (account?.limits.deadlineAt === undefined) return;
    const { tenant } = this.#cause.key;
    this.#tables.clearTimer({ tenant, agentId: account.agentId }, limitTimerId("deadlineAt", accountId));
  }

  #mayWake(chain: readonly Account[]): void {
    this.#free(topOf(chain).id);
  }

  #free(topId: string): void {
    (this.#freed ??= new Set()).add(topId);
  }

  #wake(topId: string): readonly string[] {
    const top = this.#find(topId);
    const queue = top ? this.#queueOf(top) : [];
    if (!top || queue.length === 0) return [];
    const { queue: rest, agentIds } = this.#disbanded?.has(topId)
      ? { queue: [], agentIds: [...new Set(queue.map(({ ask }) => ask.agentId))] }
      : this.#wakeNext(topId, queue);
    if (rest !== queue) this.#openQueues().change(top, rest);
    const { id, key } = this.#cause;
    const item: InboxItem = { kind: "budget.freed", key: `budget.freed:${id}`, at: this.#moment.now };
    for (const agentId of agentIds) this.#tables.addToInbox({ tenant: key.tenant, agentId }, item);
    return agentIds;
  }

  #wakeNext(topId: string, queue: readonly Waiter[]) {
    const find = (id: string): Account | undefined => this.#find(id);
    const changed = [...this.#read.values()].flatMap(({ account, isChanged }) => (isChanged ? [account] : []));
    return wakeNext(queue, { topId, find, changed }, this.#moment);
  }

  #queueOf(top: Account): readonly Waiter[] {
    return this.#queues || top.line?.waiting ? this.#openQueues().of(top) : noWaiters;
  }

  #openQueues(): ReservationQueues {
    return (this.#queues ??= new ReservationQueues(this.#tables, this.#cause.key.tenant));
  }

  #find(id: string): Account | undefined {
    const known = this.#read.get(id);
    if (known) return known.account;
    const stored = this.#tables.account(this.#cause.key.tenant, id);
    if (stored) this.#read.set(id, { stored, account: stored, isChanged: false });
    return stored;
  }

  #mustFind(id: string): Account {
    const account = this.#find(id);
    if (account) return account;
    throw new InvariantError(`account ${id} is not open, though agent ${this.#cause.key.agentId} spends on it`);
  }

  #chain(id: string): Account[] {
    const chain: Account[] = [];
    for (let next: string | null = id; next !== null; ) {
      const account = this.#mustFind(next);
      chain.push(account);
      next = account.parentId;
    }
    return chain;
  }

  #put(account: Account): void {
    const known = this.#read.get(account.id);
    if (!known) this.#read.set(account.id, { stored: undefined, account, isChanged: true });
    else {
      known.account = account;
      known.isChanged = true;
    }
  }

  #putAll(accounts: readonly Account[]): void {
    for (const account of accounts) this.#put(account);
  }
}

/** The output is at most that of the reservation above the root. */
function boundedBy(ask: ReservationAsk, { reservation }: OuterHold): ReservationAsk {
  if (!reservation || reservation.outputTokens >= ask.outputTokens) return ask;
  const { outputTokens } = reservation;
  return { ...ask, outputTokens, minimumOutputTokens: Math.min(ask.minimumOutputTokens, outputTokens) };
}

function withHold(judgement: Judgement, { id, reservation: above }: OuterHold): Judgement {
  if (!judgement.granted || !judgement.reservation || !above) return judgement;
  const isBound = judgement.reservation.isBound === true || above.isBound === true;
  return { ...judgement, reservation: { ...judgement.reservation, isBound, hold: id } };
}

/** A chain is never empty. */
function topOf(chain: readonly Account[]): Account {
  const top = chain.at(-1);
  if (top) return top;
  throw new InvariantError("a chain of accounts is empty");
}

const nothing: FiredTimer = Object.freeze({ posted: [], timers: [] });

/**
 * Handles a timer of an account. Claim: an amount that was kept free in vain is offered to the next waiter. Limit: the warning is posted
 * to the account's agent. If it is repeated or late, it changes nothing more.
 */
export function fireAccountTimer(tables: Tables, timer: AccountTimer, moment: Moment): FiredTimer {
  const { tenant, agentId, accountId } = timer;
  const record = tables.agent({ tenant, agentId });
  const account = tables.account(tenant, accountId);
  if (!record || !account) return nothing;
  const { rootAgentId, status, openTurnId } = record;
  const cause = { id: `${timer.id}:${timer.dueAt}`, key: { tenant, agentId }, rootAgentId };
  const ledger = new Ledger(tables, cause, moment);
  if (timer.kind === "claim") {
    ledger.endClaims(accountId);
    return ledger.flush();
  }
  const { limit } = timer;
  const alarm = alarmOf(account, limit);
  const time = limit === "maxActiveMs" ? moment.steady : moment.now;
  // The timer was moved, or it is the timer of the limit itself.
  if (!alarm || alarm.dueAt > time || alarm.dueAt === alarm.limitAt) return nothing;
  const isAtWork = status !== "shutdown" && (openTurnId !== null || account.activeCount > 0);
  if (!isAtWork) {
    // No agent is working that could be warned; the next one that spends on the account is warned.
    const { limitAt } = alarm;
    return { posted: [], timers: [setLimitTimer(tables, tenant, account, limit, { dueAt: limitAt, limitAt })] };
  }
  const posted = new Set<string>();
  for (const met of ledger.warnOf(accountId)) {
    const key = `budget.warning:${accountId}:${met.limit}`;
    const item: InboxItem = { kind: "budget.warning", key, at: moment.now, ...met };
    if (tables.addToInbox({ tenant, agentId }, item)) posted.add(agentId);
  }
  const { timers } = ledger.flush();
  return { posted: [...posted], timers };
}

const timeLimits = ["deadlineAt", "maxActiveMs"] as const satisfies readonly TimeLimit[];

/**
 * Sets the timers that a change of an account requires and returns them. Each time limit has one timer: first for its warning, then for
 * the limit. A deadline's timer runs from the opening of the account on, that of active time while an agent works.
 */
export function changeTimers(
  tables: LedgerTables,
  tenant: string,
  before: Account | undefined,
  account: Account,
): Timer[] {
  if (before && hasSameAlarms(before, account)) return [];
  const timers: Timer[] = [];
  for (const limit of timeLimits) {
    if (account.limits[limit] === undefined && before?.limits[limit] === undefined) continue;
    const alarm = alarmOf(account, limit);
    const known = before && alarmOf(before, limit);
    if (alarm?.dueAt === known?.dueAt && alarm?.limitAt === known?.limitAt) continue;
    if (alarm) timers.push(setLimitTimer(tables, tenant, account, limit, alarm));
    else tables.clearTimer({ tenant, agentId: account.agentId }, limitTimerId(limit, account.id));
  }
  return timers;
}

/** Whether the change does not affect the due times of timers, which is the case for most changes. */
function hasSameAlarms(before: Account, account: Account): boolean {
  return (
    before.activeSince === account.activeSince &&
    before.used.activeMs === account.used.activeMs &&
    before.warned === account.warned &&
    before.limits === account.limits
  );
}

export function setLimitTimer(
  tables: LedgerTables,
  tenant: string,
  { id: accountId, agentId }: Account,
  limit: TimeLimit,
  { dueAt, limitAt }: LimitAlarm,
): Timer {
  const id = limitTimerId(limit, accountId);
  const isWarning = dueAt < limitAt ? { limitAt } : {};
  const timer: Timer = { kind: "limit", tenant, agentId, id, dueAt, accountId, limit, ...isWarning };
  tables.setTimer(timer);
  return timer;
}

export function limitTimerId(limit: TimeLimit, accountId: string): string {
  return `${limit}:${accountId}`;
}
