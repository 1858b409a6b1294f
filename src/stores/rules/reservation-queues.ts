import { randomUUID } from "node:crypto";
import { type Account, claimsEndAt, type Waiter } from "../../budget/index.ts";
import type { Timer } from "../../state/index.ts";
import type { LineChange, Tables } from "./tables.ts";

const nobody: readonly Waiter[] = Object.freeze([]);

/**
 * The lines of those who wait, as one piece of work sees them.
 * Owns: which waiters it has changed, and the alarm for those who were told of room. Does not own: the accounts.
 *
 * Invariants
 * 1. A line is read only where its account says that somebody waits, and what is written is what has changed of it.
 * 2. While somebody has been told of room and has not asked yet, an alarm is set that comes no later than the end of what is
 *    kept for him: nobody sleeps behind one who never asks.
 */
export class WaitingLines {
  readonly #tables: Tables;
  readonly #tenant: string;
  readonly #before = new Map<string, readonly Waiter[]>();
  readonly #now = new Map<string, readonly Waiter[]>();
  /** Accounts whose alarm has come. */
  readonly #rung = new Set<string>();

  constructor(tables: Tables, tenant: string) {
    this.#tables = tables;
    this.#tenant = tenant;
  }

  of(top: Account): readonly Waiter[] {
    const known = this.#now.get(top.id);
    if (known) return known;
    if (!top.line?.waiting) return nobody;
    const line = this.#tables.waiters(this.#tenant, top);
    this.#before.set(top.id, line);
    this.#now.set(top.id, line);
    return line;
  }

  change(top: Account, line: readonly Waiter[]): void {
    if (!this.#before.has(top.id)) this.#before.set(top.id, this.of(top));
    this.#now.set(top.id, line);
  }

  /** The alarm has come, and is to be set anew where somebody is still to ask. */
  ring(top: Account): void {
    this.change(top, this.of(top));
    this.#rung.add(top.id);
  }

  /** Ids of the accounts of which something is to be written. */
  get changed(): string[] {
    return [...this.#now.keys()].filter((id) => this.#rung.has(id) || this.#now.get(id) !== this.#before.get(id));
  }

  /** Writes what has changed of a line; gives the account as it stands then, and the alarm that was set. */
  write(top: Account, rootAgentId: string): { readonly account: Account; readonly timers: readonly Timer[] } {
    const before = this.#before.get(top.id) ?? nobody;
    const line = this.of(top);
    const { alarmAt, timers } = this.#alarm(top, line, top.line?.alarmAt ?? null);
    const account = { ...top, line: { waiting: line.length, revision: randomUUID(), alarmAt } };
    this.#tables.putLine(this.#tenant, rootAgentId, { account, line, ...differenceOf(before, line) });
    return { account, timers };
  }

  /** One that is set stays until it comes, or nobody waits any more: then it looks who is next. */
  #alarm(
    { id: accountId, agentId }: Account,
    line: readonly Waiter[],
    known: number | null,
  ): { readonly alarmAt: number | null; readonly timers: readonly Timer[] } {
    const tenant = this.#tenant;
    const id = claimTimerId(accountId);
    const standing = this.#rung.has(accountId) ? null : known;
    const dueAt = claimsEndAt(line);
    if (dueAt !== undefined && (standing === null || dueAt < standing)) {
      const timer: Timer = { kind: "claim", tenant, agentId, id, dueAt, accountId };
      this.#tables.setTimer(timer);
      return { alarmAt: dueAt, timers: [timer] };
    }
    if (line.length > 0 && standing !== null) return { alarmAt: standing, timers: [] };
    if (known !== null) this.#tables.clearTimer({ tenant, agentId }, id);
    return { alarmAt: null, timers: [] };
  }
}

/** Both are in the order of their places; one that has changed keeps its place. */
function differenceOf(before: readonly Waiter[], line: readonly Waiter[]): Pick<LineChange, "put" | "removed"> {
  const put: Waiter[] = [];
  const removed: string[] = [];
  let at = 0;
  for (const waiter of line) {
    let known = before[at];
    for (; known && known.place < waiter.place; known = before[at]) {
      removed.push(known.ask.key);
      at += 1;
    }
    if (known?.place === waiter.place) {
      at += 1;
      // The last one's place is given again when it has left.
      if (known.ask.key !== waiter.ask.key) removed.push(known.ask.key);
    }
    if (known !== waiter) put.push(waiter);
  }
  return { put, removed: [...removed, ...before.slice(at).map(({ ask }) => ask.key)] };
}

export function claimTimerId(accountId: string): string {
  return `claim:${accountId}`;
}

/** All who wait on these accounts. */
export function waitersOf(tables: Tables, tenant: string, accounts: readonly Account[]): Waiter[] {
  return accounts.flatMap((account) => (account.line?.waiting ? tables.waiters(tenant, account) : []));
}
