import {
  type Account,
  agentAccountId,
  backgroundAccountId,
  countActivity,
  type LimitName,
  type Limits,
  moveToBackground,
  type NewAccount,
  openAccount,
  type ReservedAmounts,
  settle,
  turnAccountId,
  withLimits,
  withReservation,
  withToolCall,
} from "../../budget/index.ts";
import {
  activityAfter,
  areCallsWaiting,
  type RefusalReason,
  sameActivity,
  startActivity,
  type TurnActivity,
} from "../../state/index.ts";
import { type AccountAt, type AccountTerms, type StoredTerms, termsOf } from "./account-at.ts";
import type { RunEntry, RunEntryOf } from "./run-log.ts";

/** A reservation of a model call in flight. */
export interface ReservationAt extends ReservedAmounts {
  readonly agentId: string;
  readonly turnId: string;
  readonly step: number;
  readonly accountId: string;
  readonly model: string;
  /** The hook or tool call that calls `generate()`; `null` for the turn's own call. */
  readonly run: string | null;
  readonly since: number;
}

/** An intent that a limit, a pause or an abort has refused. */
export interface RefusalAt {
  readonly at: number;
  readonly seq: number;
  readonly agentId: string;
  readonly turnId: string;
  readonly callId: string | null;
  readonly intent: RunEntryOf<"intent.refused">["intent"];
  readonly reason: RefusalReason;
  readonly accountId: string | null;
  readonly limit: LimitName | null;
  readonly used: number | null;
  readonly max: number | null;
  /** The least that it would have taken of the limit. */
  readonly needed: number | null;
}

/** Refusals that are kept; older ones are only counted. */
const REFUSALS_KEPT = 200;

/** One limit of an account as it might have been, in its own unit. */
export interface SupposedLimit {
  readonly accountId: string;
  readonly limit: LimitName;
  readonly max: number;
}

/** The open turn of an agent. */
interface OpenTurn {
  readonly turnId: string;
  readonly accountId: string;
  readonly activity: TurnActivity;
}

/**
 * The accounts of a tree after each entry of its journal, in the order of the tree, by the rules of `budget` and `state`.
 * Owns: the accounts, reservations in flight, refusals, and the turns that wait. Does not own: the terms of accounts that
 * code has opened outside of the journal, which `learn` brings.
 *
 * Invariants
 * 1. Amounts and reservations equal those of the stored accounts after the same row.
 * 2. What it has given out never changes. An entry costs as much as the chain of its accounts is long, a clone as much as
 *    its maps.
 */
export class AccountFold {
  #accounts = new Map<string, AccountAt>();
  #known = new Map<string, AccountTerms>();
  #turns = new Map<string, OpenTurn>();
  #inFlight = new Map<string, ReservationAt>();
  #waiting = new Map<string, RefusalAt>();
  #paused = new Set<string>();
  #refusals: readonly RefusalAt[] = [];
  #refused = 0;
  #refusedLast = new Map<string, RefusalAt>();
  #supposed: SupposedLimit | undefined;

  /** For keyframes: neither changes the other from here on, except that what one learns the other knows too. */
  clone(): AccountFold {
    const copy = new AccountFold();
    copy.#accounts = new Map(this.#accounts);
    copy.#known = this.#known;
    copy.#turns = new Map(this.#turns);
    copy.#inFlight = new Map(this.#inFlight);
    copy.#waiting = new Map(this.#waiting);
    copy.#paused = new Set(this.#paused);
    copy.#refusals = this.#refusals;
    copy.#refused = this.#refused;
    copy.#refusedLast = new Map(this.#refusedLast);
    copy.#supposed = this.#supposed;
    return copy;
  }

  /** From here on the account has this limit, and keeps it when the journal changes it. A clone from before does not. */
  suppose(supposed: SupposedLimit): void {
    this.#supposed = supposed;
    const account = this.#accounts.get(supposed.accountId);
    if (account) this.#put([{ ...account, limits: this.#limitsOf(account) }]);
  }

  /**
   * Takes the terms of stored accounts, whenever they become known: the lifetime accounts of agents that code has created
   * are not in the journal. Such an account is opened by the first entry of its agent, others when the journal opens them.
   */
  learn(accounts: Iterable<StoredTerms>): void {
    for (const account of accounts) this.#known.set(account.id, termsOf(account));
  }

  apply(agentId: string, entry: RunEntry): void {
    const own = agentAccountId(agentId);
    const terms = this.#accounts.has(own) ? undefined : this.#known.get(own);
    if (terms) this.#open(terms, terms.openedAt);
    this.#settleOrReserve(agentId, entry);
    this.#count(agentId, entry);
    this.#openFor(agentId, entry);
    this.#noteActivity(agentId, entry);
    this.#close(agentId, entry);
  }

  /** In the order in which they were opened. */
  get accounts(): readonly AccountAt[] {
    return [...this.#accounts.values()];
  }

  account(id: string): AccountAt | undefined {
    return this.#accounts.get(id);
  }

  /** The accounts that pay what this one pays, from itself to the top. */
  chain(accountId: string): AccountAt[] {
    const chain: AccountAt[] = [];
    for (let account = this.#accounts.get(accountId); account; ) {
      chain.push(account);
      account = account.parentId === null ? undefined : this.#accounts.get(account.parentId);
    }
    return chain;
  }

  get inFlight(): readonly ReservationAt[] {
    return [...this.#inFlight.values()];
  }

  /** Turns whose calls wait for others' reservations, by the first refusal of each that still holds. */
  get waiting(): readonly RefusalAt[] {
    return [...this.#waiting.values()];
  }

  /** The newest ones, oldest first. */
  get refusals(): readonly RefusalAt[] {
    return this.#refusals;
  }

  /** How many there were in all. */
  get refusalCount(): number {
    return this.#refused;
  }

  /** The last time that a limit has refused something to the agent. */
  refusalOf(agentId: string): RefusalAt | undefined {
    return this.#refusedLast.get(agentId);
  }

  #settleOrReserve(agentId: string, entry: RunEntry): void {
    switch (entry.type) {
      case "model.requested":
      case "generate.requested": {
        const { reservation, ask, turnId, step, model, at } = entry;
        if (!reservation) return;
        const { accountId, tokens, costMicros } = reservation;
        const run = entry.type === "generate.requested" ? entry.run : null;
        this.#inFlight.set(flightOf(entry), {
          agentId,
          turnId,
          step,
          accountId,
          model,
          run,
          since: at,
          tokens,
          costMicros,
        });
        this.#waiting.delete(`${turnId} ${entry.type}`);
        // Nothing of the steps before asks any more.
        if (run === null) this.#waiting.delete(`${turnId} generate.requested`);
        this.#change(accountId, (chain) => chain.map((account) => withReservation(account, ask, reservation)));
        return;
      }
      case "model.responded":
      case "model.failed":
      case "generate.responded":
      case "generate.failed": {
        const { settlement } = entry;
        this.#inFlight.delete(flightOf(entry));
        if (settlement) this.#change(settlement.reservation.accountId, (chain) => settle(chain, settlement));
        return;
      }
      case "tool.billed": {
        const { settlement } = entry;
        this.#change(settlement.reservation.accountId, (chain) => settle(chain, settlement));
        return;
      }
      case "budget.changed":
        this.#change(entry.accountId, ([account]) => {
          const limits = this.#limitsOf({ id: entry.accountId, limits: entry.limits });
          return account ? [withLimits(account, limits)] : [];
        });
        return;
      default:
    }
  }

  #count(agentId: string, entry: RunEntry): void {
    if (entry.type === "intent.refused") return this.#refuse(agentId, entry);
    const isCall = entry.type === "tool.started" && entry.attempt === 1;
    // A spawn that is repeated finds its child.
    const isChild = entry.type === "child.spawned" && !this.#accounts.has(agentAccountId(entry.childId));
    if (!isCall && !isChild) return;
    this.#change(entry.accountId, (chain) => chain.map((account) => withToolCall(account, agentId)));
  }

  #refuse(agentId: string, entry: RunEntryOf<"intent.refused">): void {
    const { at, seq, turnId, callId = null, intent, reason, accountId = null, limit = null } = entry;
    const { used = null, max = null, needed = null } = entry;
    const refusal = { at, seq, agentId, turnId, callId, intent, reason, accountId, limit, used, max, needed };
    if (reason === "budget" || reason === "unpriced") this.#refusedLast.set(agentId, refusal);
    this.#refused += 1;
    this.#refusals = [...this.#refusals.slice(1 - REFUSALS_KEPT), refusal];
    const key = `${turnId} ${intent}`;
    if (reason !== "mustWait") this.#waiting.delete(key);
    else if (!this.#waiting.has(key)) this.#waiting.set(key, refusal);
  }

  #openFor(agentId: string, entry: RunEntry): void {
    if (entry.type === "child.spawned") {
      const { childId, accountId: parentId, at, limits = {} } = entry;
      this.#open({ id: agentAccountId(childId), agentId: childId, turnId: null, parentId, limits }, at);
    }
    if (entry.type === "turn.started") {
      const { accountId: id, turnId, limits, at, wokenBy } = entry;
      const own = agentAccountId(agentId);
      // A turn that a child's end has started spends from what is left of the turn that started the child.
      const woken = wokenBy === undefined ? undefined : this.#accounts.get(agentAccountId(wokenBy))?.parentId;
      const parentId = woken ?? (this.#accounts.has(own) ? own : null);
      this.#open({ id, agentId, turnId, parentId, limits }, at);
    }
  }

  #noteActivity(agentId: string, entry: RunEntry): void {
    if (entry.type === "turn.started") {
      const { turnId, accountId } = entry;
      this.#turns.set(agentId, { turnId, accountId, activity: startActivity(entry) });
    }
    if (entry.type === "agent.paused") this.#paused.add(agentId);
    if (entry.type === "agent.resumed") this.#paused.delete(agentId);
    const before = this.#turns.get(agentId);
    if (!before) return;
    const changes = activityAfter(before.activity, entry);
    const turn = changes === sameActivity ? before : { ...before, activity: { ...before.activity, ...changes } };
    const isActive = entry.type !== "turn.ended" && !this.#paused.has(agentId) && this.#isWorking(turn);
    if (entry.type === "turn.ended") this.#endTurn(entry, turn);
    if (this.#accounts.get(turn.accountId)?.isActive !== isActive) {
      this.#change(turn.accountId, (chain) => countActivity(chain, isActive, entry.at));
    }
    if (entry.type === "turn.ended") this.#turns.delete(agentId);
    else if (turn !== before) this.#turns.set(agentId, turn);
  }

  #isWorking({ turnId, activity }: OpenTurn): boolean {
    if (!areCallsWaiting(activity)) return true;
    for (const reservation of this.#inFlight.values()) if (reservation.turnId === turnId) return true;
    return false;
  }

  /** Children that go on share what the turn has left. The stored terms of their account are the exact ones, if known. */
  #endTurn({ turnId, at }: RunEntryOf<"turn.ended">, { accountId, activity }: OpenTurn): void {
    const turn = this.#accounts.get(accountId);
    const { backgroundIds, leavingIds, waking } = activity;
    const childIds = new Set([...backgroundIds, ...leavingIds, ...waking.map(({ childId }) => childId)]);
    const children = [...childIds].flatMap((id) => this.#accounts.get(agentAccountId(id)) ?? []);
    const moved = children.filter(({ parentId }) => parentId === accountId);
    if (!turn || moved.length === 0) return;
    const isSupposed = this.#supposed?.accountId === accountId;
    const stored = isSupposed ? undefined : this.#known.get(backgroundAccountId(turnId));
    const above = stored || turn.parentId === null ? undefined : this.#accounts.get(turn.parentId);
    const { turn: left, background, children: after } = moveToBackground(turn, moved, above, at);
    this.#put([
      left,
      ...(background ? [stored ? { ...background, limits: stored.limits } : background] : []),
      ...after,
    ]);
  }

  #close(agentId: string, entry: RunEntry): void {
    if (entry.type !== "turn.ended" && entry.type !== "agent.shutdown") return;
    const id = entry.type === "turn.ended" ? turnAccountId(entry.turnId) : agentAccountId(agentId);
    const account = this.#accounts.get(id);
    if (account) this.#accounts.set(id, { ...account, closedAt: entry.at });
    if (entry.type !== "turn.ended") return;
    for (const intent of ["model.requested", "generate.requested", "tool.started", "child.spawned"]) {
      this.#waiting.delete(`${entry.turnId} ${intent}`);
    }
  }

  /** Opening an account again changes nothing. It opens at the time of its entry, as it closes; the store notes its own. */
  #open(account: NewAccount, at: number): void {
    if (this.#accounts.has(account.id)) return;
    const limits = this.#limitsOf(this.#known.get(account.id) ?? account);
    this.#put([openAccount({ ...account, limits }, at)]);
  }

  #limitsOf({ id, limits }: Pick<Account, "id" | "limits">): Limits {
    const supposed = this.#supposed;
    return supposed?.accountId === id ? { ...limits, [supposed.limit]: supposed.max } : limits;
  }

  /** Changes an account and those above it, by a rule over their chain. */
  #change(accountId: string, change: (chain: readonly Account[]) => readonly Account[]): void {
    this.#put(change(this.chain(accountId)));
  }

  #put(accounts: readonly Account[]): void {
    for (const account of accounts) {
      const closedAt = this.#accounts.get(account.id)?.closedAt ?? null;
      this.#accounts.set(account.id, { ...account, closedAt });
    }
  }
}

type ModelEntry = RunEntryOf<
  | "model.requested"
  | "model.responded"
  | "model.failed"
  | "generate.requested"
  | "generate.responded"
  | "generate.failed"
>;

/** A turn has one model call in flight, and each run of its code one of each number. */
export function flightOf(entry: ModelEntry): string {
  return "run" in entry ? `${entry.turnId} ${entry.run} ${entry.index}` : entry.turnId;
}
