import { randomUUID } from "node:crypto";
import { type Account, claimsEndAt, type Waiter } from "../../budget/index.ts";
import type { Timer } from "../../state/index.ts";
import type { LedgerTables, WaiterChanges } from "./tables.ts";

export const noWaiters: readonly Waiter[] = Object.freeze([]);

/**
 * The queues of calls that wait for a reservation, one per top account, as seen by one batch or command.
 * Owns: which waiters have changed, and the timer for woken waiters. Does not own: the accounts.
 *
 * Invariants
 * 1. A queue is read only if its account shows that a call waits, and only its changes are written.
 * 2. While a woken waiter has not asked yet, a timer is set that fires no later than its claim expires: no call waits behind a waiter
 *    that never asks.
 */
export class ReservationQueues {
  readonly #tables: LedgerTables;
  readonly #tenant: string;
  readonly #before = new Map<string, readonly Waiter[]>();
  readonly #now = new Map<string, readonly Waiter[]>();
  /** Accounts whose timer has fired. */
  readonly #fired = new Set<string>();

  constructor(tables: LedgerTables, tenant: string) {
    this.#tables = tables;
    this.#tenant = tenant;
  }

  of(top: Account): readonly Waiter[] {
    const known = this.#now.get(top.id);
    if (known) return known;
    if (!top.line?.waiting) return noWaiters;
    const queue = this.#tables.waiters(this.#tenant, top);
    this.#before.set(top.id, queue);
    this.#now.set(top.id, queue);
    return queue;
  }

  change(top: Account, queue: readonly Waiter[]): void {
    if (!this.#before.has(top.id)) this.#before.set(top.id, this.of(top));
    this.#now.set(top.id, queue);
  }

  /** Called when the timer has fired; the timer is set again if a woken waiter has not asked yet. */
  timerFired(top: Account): void {
    this.change(top, this.of(top));
    this.#fired.add(top.id);
  }

  /** Ids of the accounts whose queue has to be written. */
  get changed(): string[] {
    return [...this.#now.keys()].filter((id) => this.#fired.has(id) || this.#now.get(id) !== this.#before.get(id));
  }

  /** Writes the changes of a queue; returns the account with its new revision, and the timer that was set. */
  write(top: Account, rootAgentId: string): { readonly account: Account; readonly timers: readonly Timer[] } {
    const before = this.#before.get(top.id) ?? noWaiters;
    const queue = this.of(top);
    const { alarmAt, timers } = this.#setTimer(top, queue, top.line?.alarmAt ?? null);
    const account = { ...top, line: { waiting: queue.length, revision: randomUUID(), alarmAt } };
    this.#tables.putWaiters(this.#tenant, rootAgentId, { account, waiters: queue, ...differenceOf(before, queue) });
    return { account, timers };
  }

  /** A timer stays set until it fires or the queue is empty; when it fires, the next one is set. */
  #setTimer(
    { id: accountId, agentId }: Account,
    queue: readonly Waiter[],
    known: number | null,
  ): { readonly alarmAt: number | null; readonly timers: readonly Timer[] } {
    const tenant = this.#tenant;
    const id = claimTimerId(accountId);
    const pendingAt = this.#fired.has(accountId) ? null : known;
    const dueAt = claimsEndAt(queue);
    if (dueAt !== undefined && (pendingAt === null || dueAt < pendingAt)) {
      const timer: Timer = { kind: "claim", tenant, agentId, id, dueAt, accountId };
      this.#tables.setTimer(timer);
      return { alarmAt: dueAt, timers: [timer] };
    }
    if (queue.length > 0 && pendingAt !== null) return { alarmAt: pendingAt, timers: [] };
    if (known !== null) this.#tables.clearTimer({ tenant, agentId }, id);
    return { alarmAt: null, timers: [] };
  }
}

/** Both lists are in queue order; a changed waiter keeps its position. */
function differenceOf(before: readonly Waiter[], queue: readonly Waiter[]): Pick<WaiterChanges, "put" | "removed"> {
  const put: Waiter[] = [];
  const removed: string[] = [];
  let at = 0;
  for (const waiter of queue) {
    let known = before[at];
    for (; known && known.place < waiter.place; known = before[at]) {
      removed.push(known.ask.key);
      at += 1;
    }
    if (known?.place === waiter.place) {
      at += 1;
      // When the last waiter has left, its position is assigned again.
      if (known.ask.key !== waiter.ask.key) removed.push(known.ask.key);
    }
    if (known !== waiter) put.push(waiter);
  }
  return { put, removed: [...removed, ...before.slice(at).map(({ ask }) => ask.key)] };
}

function claimTimerId(accountId: string): string {
  return `claim:${accountId}`;
}

/** All waiters of these accounts. */
export function waitersOf(tables: LedgerTables, tenant: string, accounts: readonly Account[]): Waiter[] {
  return accounts.flatMap((account) => (account.line?.waiting ? tables.waiters(tenant, account) : []));
}
