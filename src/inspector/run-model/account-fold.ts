import type { LimitName, ReservedAmounts } from "../../budget/index.ts";
import type { RefusalReason } from "../../state/index.ts";
import {
  type AccountAt,
  type AccountTerms,
  type ExactAmounts,
  type FoldedEntry,
  type FoldedEntryOf,
  type StoredTerms,
  termsOf,
} from "./account-at.ts";
import { backgroundOf } from "./background-account.ts";
import { afterEntry, isWorking, type OpenTurn, startedTurn } from "./turn-activity.ts";

/** A reservation of a model call in flight. */
export interface ReservationAt extends ReservedAmounts {
  readonly agentId: string;
  readonly turnId: string;
  readonly step: number;
  readonly accountId: string;
  readonly model: string;
  /** Of a call of `generate()`: the hook or tool call that makes it. Null: the turn's own call. */
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
  readonly intent: FoldedEntryOf<"intent.refused">["intent"];
  readonly reason: RefusalReason;
  readonly accountId: string | null;
  readonly limit: LimitName | null;
  readonly used: number | null;
  readonly max: number | null;
}

/** Refusals that are kept; older ones are only counted. */
const REFUSALS_KEPT = 200;

const nothing: ReservedAmounts = { tokens: 0, costMicros: 0 };
const noAmounts: ExactAmounts = { steps: 0, treeSteps: 0, toolCalls: 0, treeToolCalls: 0, tokens: 0, costMicros: 0 };

/** An account that nobody else has seen yet. */
type OwnAccount = {
  -readonly [Name in keyof AccountAt]: Name extends "used" | "reserved" | "unconfirmed" | "time"
    ? { -readonly [Field in keyof AccountAt[Name]]: AccountAt[Name][Field] }
    : AccountAt[Name];
};

/**
 * The accounts of a tree after each entry of its journal, in the order of the tree.
 * Owns: the accounts, reservations in flight, refusals, and who waits. Does not own: the terms of accounts that code has
 * opened outside of the journal, which `learn` brings.
 *
 * Invariants
 * 1. Amounts and reservations equal those of the stored accounts after the same row.
 * 2. What it has given out never changes: an account is copied by the first change after it was given out, or shared
 *    with a clone. An entry costs as much as the chain of its accounts is long, a clone as much as its maps.
 */
export class AccountFold {
  #accounts = new Map<string, OwnAccount>();
  /** Ids of the accounts that may be changed in place. */
  #own = new Set<string>();
  #known = new Map<string, AccountTerms>();
  #turns = new Map<string, OpenTurn>();
  #inFlight = new Map<string, ReservationAt>();
  #waiting = new Map<string, RefusalAt>();
  #paused = new Set<string>();
  /** Of the parts of open turns that are changed in place. */
  #owner = {};
  #refusals: readonly RefusalAt[] = [];
  #refused = 0;

  /** For keyframes: neither changes the other from here on, except that what one learns the other knows too. */
  clone(): AccountFold {
    const copy = new AccountFold();
    this.#own.clear();
    this.#owner = {};
    copy.#accounts = new Map(this.#accounts);
    copy.#known = this.#known;
    copy.#turns = new Map(this.#turns);
    copy.#inFlight = new Map(this.#inFlight);
    copy.#waiting = new Map(this.#waiting);
    copy.#paused = new Set(this.#paused);
    copy.#refusals = this.#refusals;
    copy.#refused = this.#refused;
    return copy;
  }

  /**
   * Takes the terms of stored accounts, whenever they become known: the lifetime accounts of agents that code has created
   * are not in the journal. Such an account is opened by the first entry of its agent, others when the journal opens them.
   */
  learn(accounts: Iterable<StoredTerms>): void {
    for (const account of accounts) this.#known.set(account.id, termsOf(account));
  }

  apply(agentId: string, entry: FoldedEntry): void {
    const own = lifetimeOf(agentId);
    if (!this.#accounts.has(own)) this.#openKnown(own);
    this.#settleOrReserve(agentId, entry);
    this.#count(agentId, entry);
    this.#open(agentId, entry);
    if (entry.type === "budget.changed") this.#setLimits(entry);
    this.#noteActivity(agentId, entry);
    this.#close(agentId, entry);
  }

  /** In the order in which they were opened. */
  get accounts(): readonly AccountAt[] {
    this.#own.clear();
    return [...this.#accounts.values()];
  }

  account(id: string): AccountAt | undefined {
    this.#own.delete(id);
    return this.#accounts.get(id);
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

  #settleOrReserve(agentId: string, entry: FoldedEntry): void {
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
        const stepOf = ask.opensStep ? ask.agentId : null;
        this.#change(accountId, (account) => reserve(account, reservation, stepOf));
        return;
      }
      case "model.responded":
      case "model.failed":
      case "generate.responded":
      case "generate.failed": {
        const { settlement } = entry;
        this.#inFlight.delete(flightOf(entry));
        if (settlement) this.#change(settlement.reservation.accountId, (account) => settle(account, settlement));
        return;
      }
      case "tool.billed": {
        const { settlement } = entry;
        this.#change(settlement.reservation.accountId, (account) => settle(account, settlement));
        return;
      }
      default:
    }
  }

  #count(agentId: string, entry: FoldedEntry): void {
    if (entry.type === "intent.refused") return this.#refuse(agentId, entry);
    const isCall = entry.type === "tool.started" && entry.attempt === 1;
    // A spawn that is repeated finds its child.
    const isChild = entry.type === "child.spawned" && !this.#accounts.has(lifetimeOf(entry.childId));
    if (isCall || isChild) this.#change(entry.accountId, (account) => countCall(account, agentId));
  }

  #refuse(agentId: string, entry: FoldedEntryOf<"intent.refused">): void {
    const { at, seq, turnId, callId = null, intent, reason, accountId = null, limit = null } = entry;
    const { used = null, max = null } = entry;
    const refusal = { at, seq, agentId, turnId, callId, intent, reason, accountId, limit, used, max };
    this.#refused += 1;
    this.#refusals = [...this.#refusals.slice(1 - REFUSALS_KEPT), refusal];
    const key = `${turnId} ${intent}`;
    if (reason !== "mustWait") this.#waiting.delete(key);
    else if (!this.#waiting.has(key)) this.#waiting.set(key, refusal);
  }

  #open(agentId: string, entry: FoldedEntry): void {
    if (entry.type === "child.spawned") {
      const { childId, accountId: parentId, at, limits = {} } = entry;
      this.#add({ id: lifetimeOf(childId), agentId: childId, turnId: null, parentId, limits, openedAt: at });
    }
    if (entry.type === "turn.started") {
      const { accountId: id, turnId, limits, at, wokenBy } = entry;
      const own = lifetimeOf(agentId);
      // A turn that a child's end has started spends from what is left of the turn that started the child.
      const woken = wokenBy === undefined ? undefined : this.#accounts.get(lifetimeOf(wokenBy))?.parentId;
      const parentId = woken ?? (this.#accounts.has(own) ? own : null);
      this.#add({ id, agentId, turnId, parentId, limits, openedAt: at });
    }
  }

  #noteActivity(agentId: string, entry: FoldedEntry): void {
    if (entry.type === "turn.started") this.#turns.set(agentId, startedTurn(entry));
    if (entry.type === "agent.paused") this.#paused.add(agentId);
    if (entry.type === "agent.resumed") this.#paused.delete(agentId);
    const before = this.#turns.get(agentId);
    if (!before) return;
    const turn = afterEntry(before, entry, this.#owner);
    const isActive = entry.type !== "turn.ended" && !this.#paused.has(agentId) && isWorking(turn);
    if (entry.type === "turn.ended") this.#endTurn(entry, turn);
    if (isActive !== turn.isActive) {
      this.#change(turn.accountId, ({ time }) => countActive(time, isActive, entry.at));
    }
    if (entry.type === "turn.ended") this.#turns.delete(agentId);
    else if (turn !== before || isActive !== turn.isActive) this.#turns.set(agentId, { ...turn, isActive });
  }

  /** Children that go on share what the turn has left. */
  #endTurn({ at }: FoldedEntryOf<"turn.ended">, { accountId, backgroundIds, leavingIds, waking }: OpenTurn): void {
    const turn = this.#accounts.get(accountId);
    const childIds = new Set([...backgroundIds, ...leavingIds, ...waking.map(({ childId }) => childId)]);
    const children = [...childIds].flatMap((id) => this.#accounts.get(lifetimeOf(id)) ?? []);
    const moved = children.filter(({ parentId }) => parentId === accountId);
    if (!turn || moved.length === 0) return;
    const above = turn.parentId === null ? undefined : this.#accounts.get(turn.parentId);
    const stored = this.#known.get(`background:${turn.turnId ?? turn.id}`);
    for (const account of backgroundOf(turn, moved, { above, stored, at })) {
      this.#accounts.set(account.id, account);
      this.#own.delete(account.id);
    }
  }

  #close(agentId: string, entry: FoldedEntry): void {
    const id =
      entry.type === "turn.ended"
        ? `turn:${entry.turnId}`
        : entry.type === "agent.shutdown"
          ? lifetimeOf(agentId)
          : undefined;
    const account = id === undefined ? undefined : this.#accounts.get(id);
    if (account) this.#toChange(account).closedAt = entry.at;
    if (entry.type !== "turn.ended") return;
    for (const intent of ["model.requested", "generate.requested", "tool.started", "child.spawned"]) {
      this.#waiting.delete(`${entry.turnId} ${intent}`);
    }
  }

  #setLimits({ accountId, limits }: FoldedEntryOf<"budget.changed">): void {
    const account = this.#accounts.get(accountId);
    if (account) this.#toChange(account).limits = limits;
  }

  #openKnown(id: string): void {
    const terms = this.#known.get(id);
    if (terms) this.#add(terms);
  }

  /** Opening an account again changes nothing. It opens at the time of its entry, as it closes; the store notes its own. */
  #add(terms: AccountTerms): void {
    if (this.#accounts.has(terms.id)) return;
    const { limits } = this.#known.get(terms.id) ?? terms;
    this.#accounts.set(terms.id, {
      ...terms,
      limits,
      used: { ...noAmounts },
      reserved: { ...nothing },
      unconfirmed: { ...nothing },
      time: { isExact: false, activeMs: 0, activeCount: 0, since: null },
      closedAt: null,
    });
    this.#own.add(terms.id);
  }

  /** Changes an account and all above it. */
  #change(accountId: string, change: (account: OwnAccount) => void): void {
    for (let account = this.#accounts.get(accountId); account; ) {
      change(this.#toChange(account));
      account = account.parentId === null ? undefined : this.#accounts.get(account.parentId);
    }
  }

  #toChange(account: OwnAccount): OwnAccount {
    if (this.#own.has(account.id)) return account;
    const { used, reserved, unconfirmed, time } = account;
    const copy = {
      ...account,
      used: { ...used },
      reserved: { ...reserved },
      unconfirmed: { ...unconfirmed },
      time: { ...time },
    };
    this.#accounts.set(account.id, copy);
    this.#own.add(account.id);
    return copy;
  }
}

/** The id of the account of an agent's lifetime. */
function lifetimeOf(agentId: string): string {
  return `agent:${agentId}`;
}

type ModelEntry = FoldedEntryOf<
  | "model.requested"
  | "model.responded"
  | "model.failed"
  | "generate.requested"
  | "generate.responded"
  | "generate.failed"
>;

/** A turn has one model call in flight, and each run of its code one of each number. */
function flightOf(entry: ModelEntry): string {
  return "run" in entry ? `${entry.turnId} ${entry.run} ${entry.index}` : entry.turnId;
}

function reserve({ agentId, used, reserved }: OwnAccount, amount: ReservedAmounts, stepOf: string | null): void {
  if (stepOf !== null) used.treeSteps += 1;
  if (stepOf === agentId) used.steps += 1;
  add(reserved, amount);
}

function settle(
  { used, reserved, unconfirmed }: OwnAccount,
  settlement: NonNullable<FoldedEntryOf<"model.failed">["settlement"]>,
): void {
  const { reservation } = settlement;
  add(used, settlement);
  reserved.tokens = Math.max(0, reserved.tokens - reservation.tokens);
  reserved.costMicros = Math.max(0, reserved.costMicros - reservation.costMicros);
  if (settlement.unconfirmed) add(unconfirmed, settlement);
}

/** Beyond the largest safe integer sums would be rounded. */
function add(to: { tokens: number; costMicros: number }, { tokens, costMicros }: ReservedAmounts): void {
  to.tokens = Math.min(Number.MAX_SAFE_INTEGER, to.tokens + tokens);
  to.costMicros = Math.min(Number.MAX_SAFE_INTEGER, to.costMicros + costMicros);
}

function countCall({ agentId, used }: OwnAccount, caller: string): void {
  if (agentId === caller) used.toolCalls += 1;
  used.treeToolCalls += 1;
}

function countActive(time: OwnAccount["time"], isActive: boolean, at: number): void {
  time.activeCount = Math.max(0, time.activeCount + (isActive ? 1 : -1));
  if (time.activeCount > 0) time.since ??= at;
  else if (time.since !== null) {
    time.activeMs += Math.max(0, at - time.since);
    time.since = null;
  }
}
