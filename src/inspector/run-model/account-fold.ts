import {
  type Account,
  agentAccountId,
  backgroundAccountId,
  countActivity,
  type LimitName,
  type Limits,
  moveToBackground,
  type NewAccount,
  noAmounts,
  nothingReserved,
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
  /** The hook or tool call that called `generate()`; `null` for the turn's own call. */
  readonly run: string | null;
  readonly since: number;
}

/** An intent that a limit, a pause or an abort refused. */
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
  /** The least amount of the limit that the intent would have needed. */
  readonly needed: number | null;
}

/** Most refusals that are kept. Older ones are only counted. */
const REFUSALS_KEPT = 200;

/** A hypothetical limit of an account, in the limit's unit. */
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
 * The accounts of a tree after each entry of its journal, computed by the rules of `budget` and `state`.
 * Owns: the accounts, reservations in flight, refusals and waiting turns. Does not own: the terms of accounts that code
 * opened outside of the journal; `learn` adds them.
 *
 * Invariants
 * 1. Amounts and reservations equal those of the stored accounts after the same row.
 * 2. Returned values never change. Applying an entry takes time in the length of its account chain; a clone copies the
 *    maps.
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
  #hasForked = false;

  /** For keyframes. The copies are independent, except that they share the learned terms. */
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
    copy.#hasForked = this.#hasForked;
    return copy;
  }

  /** To be called before the first entry of a fork that its origin does not have: what the fork can spend from is unused. */
  beginFork(): void {
    if (this.#hasForked) return;
    this.#hasForked = true;
    this.#inFlight.clear();
    this.#waiting.clear();
    for (const account of this.accounts) {
      const isOver =
        account.closedAt !== null && account.turnId !== null && account.id === turnAccountId(account.turnId);
      const rest = { reserved: nothingReserved, isActive: false, activeCount: 0, activeSince: null };
      this.#put([{ ...account, ...rest, ...(isOver ? {} : { used: noAmounts, models: {} }) }]);
    }
  }

  /** Replaces the limit of an account, also against later changes in the journal. Existing clones are not affected. */
  suppose(supposed: SupposedLimit): void {
    this.#supposed = supposed;
    const account = this.#accounts.get(supposed.accountId);
    if (account) this.#put([{ ...account, limits: this.#limitsOf(account) }]);
  }

  /**
   * Adds the terms of stored accounts; may be called at any time. Lifetime accounts of agents that code created are not in
   * the journal. Such an account opens with the first entry of its agent; other accounts open when the journal opens them.
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

  /** All accounts, in the order in which they were opened. */
  get accounts(): readonly AccountAt[] {
    return [...this.#accounts.values()];
  }

  account(id: string): AccountAt | undefined {
    return this.#accounts.get(id);
  }

  /** The account and its ancestors, which pay for the same calls, from itself to the top. */
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

  /** For each turn whose call waits for other calls' reservations, the first refusal that still applies. */
  get waiting(): readonly RefusalAt[] {
    return [...this.#waiting.values()];
  }

  /** The newest refusals, oldest first. */
  get refusals(): readonly RefusalAt[] {
    return this.#refusals;
  }

  /** The total number of refusals. */
  get refusalCount(): number {
    return this.#refused;
  }

  /** The last refusal of the agent because of a limit. */
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
        // Calls of previous steps no longer wait.
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
    // The child exists already if the spawn is repeated.
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
      // A turn started by a child's result pays from the remainder of the turn that started the child.
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

  /**
   * Children that keep running share the turn's remainder. If the stored terms of their account are known, they are exact.
   */
  #endTurn({ turnId, at }: RunEntryOf<"turn.ended">, { accountId, activity }: OpenTurn): void {
    const turn = this.#accounts.get(accountId);
    const { backgroundIds, leavingIds, waking } = activity;
    const childIds = new Set([...backgroundIds, ...leavingIds, ...waking.flatMap(({ childId }) => childId ?? [])]);
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

  /** No effect if the account is open already. Uses the entry's time, as closing does; the store records its own time. */
  #open(account: NewAccount, at: number): void {
    if (this.#accounts.has(account.id)) return;
    const limits = this.#limitsOf(this.#known.get(account.id) ?? account);
    this.#put([openAccount({ ...account, limits }, at)]);
  }

  #limitsOf({ id, limits }: Pick<Account, "id" | "limits">): Limits {
    const supposed = this.#supposed;
    return supposed?.accountId === id ? { ...limits, [supposed.limit]: supposed.max } : limits;
  }

  /** Applies `change` to an account and its ancestors. */
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

/** Key of the model call in flight. A turn has at most one; a run of its code has at most one per index. */
export function flightOf(entry: ModelEntry): string {
  return "run" in entry ? `${entry.turnId} ${entry.run} ${entry.index}` : entry.turnId;
}
