import {
  type Account,
  backgroundAccountId,
  countActivity,
  type Limits,
  moveToBackground,
  openAccount,
  type Reservation,
  reserve,
  type Settlement,
  settle,
} from "../../src/budget/index.ts";
import { ask, momentAt } from "./budget-fixtures.ts";

export const price = { inputPerMillion: 1, outputPerMillion: 2 };

interface OpenCall {
  readonly who: string;
  readonly reservation: Reservation;
}

/**
 * A turn `turn:desk#1` under a lifetime account, its children, and the turns that the agent starts later for their results. Next to
 * the accounts it keeps plain sums, to which they are compared.
 */
export class AccountFamily {
  readonly accounts = new Map<string, Account>();
  readonly calls: OpenCall[] = [];
  readonly active = new Set<string>();
  /** What all agents together have used, and the steps they have started. */
  readonly sum = { tokens: 0, costMicros: 0, steps: 0, ownSteps: 0 };
  now = 1_000;
  turns = 1;
  readonly #ended = new Set<string>();

  constructor(life: Limits, turn: Limits, children: readonly Limits[]) {
    this.#open("agent:desk", "desk", null, life);
    this.#open("turn:desk#1", "desk", "agent:desk", turn);
    for (const [index, limits] of children.entries()) {
      this.#open(`agent:desk~${index}`, `desk~${index}`, "turn:desk#1", limits);
    }
  }

  /** Children that did not end with their turn. */
  get children(): string[] {
    const all = [...this.accounts.keys()].filter((id) => id.startsWith("agent:desk~"));
    return all.filter((id) => !this.#ended.has(this.account(id).parentId ?? ""));
  }

  get openTurn(): string | undefined {
    return this.#ended.has(`turn:desk#${this.turns}`) ? undefined : `turn:desk#${this.turns}`;
  }

  account(id: string): Account {
    const account = this.accounts.get(id);
    if (!account) throw new Error(`no account ${id}`);
    return account;
  }

  chain(id: string): Account[] {
    const account = this.account(id);
    return [account, ...(account.parentId === null ? [] : this.chain(account.parentId))];
  }

  /** One more call of this account's holder, if it is granted. */
  call(id: string, promptTokens: number, outputTokens: number): void {
    const { agentId } = this.account(id);
    const minimumOutputTokens = Math.min(16, outputTokens);
    const asked = {
      accountId: id,
      agentId,
      promptTokens,
      promptBound: promptTokens,
      outputTokens,
      minimumOutputTokens,
      price,
    };
    const outcome = reserve(this.chain(id), ask(asked), momentAt(this.now));
    if (!outcome.granted) return;
    this.#put(outcome.accounts);
    this.calls.push({ who: id, reservation: outcome.reservation });
    this.sum.steps += 1;
    if (agentId === "desk") this.sum.ownSteps += 1;
  }

  /** Settles one of the open calls. */
  settle(which: number, share: number): void {
    const [call] = this.calls.splice(which % Math.max(1, this.calls.length), 1);
    if (!call) return;
    const { reservation } = call;
    const tokens = Math.floor(reservation.tokens * share);
    const costMicros = Math.floor(reservation.costMicros * share);
    const settlement: Settlement = { reservation, tokens, costMicros, usage: null, unconfirmed: share === 1 };
    this.#put(settle(this.chain(reservation.accountId), settlement));
    this.sum.tokens += tokens;
    this.sum.costMicros += costMicros;
  }

  work(id: string, isActive: boolean): void {
    this.#put(countActivity(this.chain(id), isActive, this.now));
    if (isActive) this.active.add(id);
    else this.active.delete(id);
  }

  /** Ends the open turn, whose own calls are over, while these children continue. */
  endTurn(goesOn: readonly string[]): void {
    const turnId = this.openTurn;
    if (!turnId) return;
    for (const id of this.children.filter((child) => this.account(child).parentId === turnId)) {
      if (!goesOn.includes(id)) this.#silence(id);
    }
    this.#silence(turnId);
    const turn = this.account(turnId);
    const moved = goesOn.map((id) => this.account(id)).filter(({ parentId }) => parentId === turnId);
    const above = turn.parentId === null ? undefined : this.account(turn.parentId);
    const { turn: rest, background, children } = moveToBackground(turn, moved, above, this.now);
    this.#put([rest, ...(background ? [background] : []), ...children]);
    this.#ended.add(turnId);
  }

  /** The agent starts a turn for the result of a child, and the turn starts one more child. */
  wake(child: string, limits: Limits): void {
    if (this.openTurn) return;
    const { parentId } = this.account(child);
    this.turns += 1;
    const turnId = `turn:desk#${this.turns}`;
    this.#open(turnId, "desk", parentId, limits);
    const name = `desk~${this.accounts.size}`;
    this.#open(`agent:${name}`, name, turnId, {});
  }

  #silence(id: string): void {
    for (let index = this.calls.findIndex(({ who }) => who === id); index >= 0; ) {
      this.settle(index, 1);
      index = this.calls.findIndex(({ who }) => who === id);
    }
    this.work(id, false);
  }

  #open(id: string, agentId: string, parentId: string | null, limits: Limits): void {
    const turnId = id.startsWith("turn:") ? id.slice("turn:".length) : null;
    this.accounts.set(id, openAccount({ id, agentId, turnId, parentId, limits }));
  }

  #put(accounts: readonly Account[]): void {
    for (const account of accounts) this.accounts.set(account.id, account);
  }
}

export const firstBackground = backgroundAccountId("desk#1");
