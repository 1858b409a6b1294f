import {
  type Account,
  agentAccountId,
  alarmOf,
  backgroundAccountId,
  countToolCall,
  type LimitName,
  type MetLimit,
  reserve,
  type Reservation,
  turnAccountId,
} from "../../budget/index.ts";
import { type AccountFold, flightOf, type SupposedLimit } from "./account-fold.ts";
import { limitUses } from "./limit-use.ts";
import type { RunEntry, RunEntryOf, RunLog } from "./run-log.ts";

export type { SupposedLimit };

/**
 * How the run would have ended on the supposed limit: a call `refused`; work cut off because its `time` is over; the `last`
 * call, which is asked for a final answer. `unknown`: there the real limit ended it, which is lower, and the journal goes no
 * further.
 */
export type SupposedEndKind = "refused" | "time" | "last" | "unknown";

/** The first moment at which the supposed limit ends something. */
export interface SupposedEnd {
  readonly kind: SupposedEndKind;
  /** How many entries there are up to it. */
  readonly count: number;
  readonly time: number;
  /** The agent whose work it ends, with the turn and step; `null` if they are not known. */
  readonly agentId: string;
  readonly turnId: string | null;
  readonly step: number | null;
  /** The account that refuses. */
  readonly accountId: string;
  /** Of the limit that ends it, in its unit: the supposed one, or the real one where it is `unknown`. For a deadline, moments. */
  readonly used: number;
  readonly max: number;
  /** The least that the refused call would have taken of the limit; null for a limit on time. */
  readonly needed: number | null;
}

/** Where the run would first have gone another way without being ended; from then on the journal is only an estimate. */
export interface SupposedTurnOff {
  /**
   * `waits`: a call would have waited for others' reservations. `shorter`: an answer would not have fitted. `sooner`: a call
   * that waited would have had room. `longer`: an answer was given less than it asked for, and would have had more.
   */
  readonly why: "waits" | "shorter" | "sooner" | "longer";
  readonly count: number;
  readonly time: number;
}

/** What would have become of a run under another limit, as far as its journal tells. */
export interface SupposedRun {
  /** `null` if the limit would have ended nothing so far. */
  readonly end: SupposedEnd | null;
  readonly turnsOff: SupposedTurnOff | null;
  /** The most that was used and reserved at once until the end, in the limit's unit. 0 for a deadline. */
  readonly most: number;
}

/** A granted call that is not over yet: what it was given in the run, and what it would have been given. */
interface Granted {
  readonly recorded: Reservation;
  readonly supposed: Reservation;
}

type Asked = RunEntryOf<"model.requested" | "generate.requested">;
type Answered = RunEntryOf<"model.responded" | "generate.responded" | "model.failed" | "generate.failed">;
type Met = MetLimit & { readonly needed?: number | undefined };
type RealLimit = { readonly [Name in keyof Met]?: Met[Name] | undefined };

/**
 * Folds a journal under a limit that an account did not have, by the rules of `budget`: what was granted is asked of the accounts
 * again.
 * Owns: its fold of the accounts. Does not own: the log.
 *
 * 1. Only the supposed limit refuses: what the others have granted in the run, they grant here.
 * 2. A call that would have been given less reserves less, and is settled at what it has really used.
 * 3. An entry is folded once, so that what has come since is folded on. Nothing is folded behind the end.
 */
export class Supposition {
  readonly #log: RunLog;
  readonly #accounts: AccountFold;
  readonly #limit: LimitName;
  /** The account, and the one that takes over what is left of it when its turn ends. */
  readonly #ids: readonly string[];
  readonly #granted = new Map<string, Granted>();
  readonly #steps = new Map<string, { readonly turnId: string; readonly step: number | null }>();
  #count: number;
  #end: SupposedEnd | null = null;
  #turnsOff: SupposedTurnOff | null = null;
  #most = 0;

  /** `accounts`: those before the first entry of the log; they are taken over. */
  constructor(log: RunLog, accounts: AccountFold, supposed: SupposedLimit) {
    const { accountId, limit } = supposed;
    const turn = turnAccountId("");
    this.#log = log;
    this.#accounts = accounts;
    this.#limit = limit;
    this.#ids = accountId.startsWith(turn)
      ? [accountId, backgroundAccountId(accountId.slice(turn.length))]
      : [accountId];
    this.#count = log.first;
    accounts.suppose(supposed);
  }

  get run(): SupposedRun {
    return { end: this.#end, turnsOff: this.#turnsOff, most: this.#most };
  }

  /** Folds on until there are `count` entries, by at most `entries`. Returns whether there are more to fold. */
  foldOn(count: number, entries = Number.POSITIVE_INFINITY): boolean {
    const all = Math.min(count, this.#log.length);
    const until = Math.min(all, this.#count + entries);
    while (this.#count < until && this.#end === null) {
      const entry = this.#log.entry(this.#count);
      if (entry) this.#fold(this.#log.agents[this.#log.agentOf(this.#count)]?.agentId ?? "", entry);
      this.#count += 1;
    }
    return this.#count < all && this.#end === null;
  }

  /** Lets time pass up to `until`, since the last entry. */
  passTime(until: number): void {
    if (this.#end === null) this.#runOut(until);
  }

  #fold(agentId: string, entry: RunEntry): void {
    this.#runOut(entry.at);
    if (this.#end) return;
    if ("turnId" in entry && entry.turnId !== undefined) {
      const { turnId } = entry;
      const before = this.#steps.get(agentId);
      const step = "step" in entry ? entry.step : before?.turnId === turnId ? before.step : null;
      this.#steps.set(agentId, { turnId, step });
    }
    const judged = this.#judged(agentId, entry);
    if (this.#end) return;
    this.#accounts.apply(agentId, judged);
    const account = this.#accounts.account(this.#ids[0] ?? "");
    const [use] = account ? limitUses(account, entry.at).filter(({ limit }) => limit === this.#limit) : [];
    if (use) this.#most = Math.max(this.#most, use.used + use.reserved);
  }

  /** The entry as it would have been. */
  #judged(agentId: string, entry: RunEntry): RunEntry {
    switch (entry.type) {
      case "model.requested":
      case "generate.requested":
        return this.#ask(agentId, entry);
      case "model.responded":
      case "generate.responded":
      case "model.failed":
      case "generate.failed":
        return this.#answer(entry);
      case "tool.started":
        if (entry.attempt === 1) this.#countCall(agentId, entry);
        return entry;
      case "child.spawned":
        if (!this.#accounts.account(agentAccountId(entry.childId))) this.#countCall(agentId, entry);
        return entry;
      case "intent.refused":
        this.#meetRefusal(agentId, entry);
        return entry;
      case "stop.signalled":
      case "timer.due":
      case "turn.ended": {
        const { signal } = entry;
        if (signal?.reason === "time_limit") this.#meetReal(agentId, signal);
        return entry;
      }
      default:
        return entry;
    }
  }

  #ask<Entry extends Asked>(agentId: string, entry: Entry): Entry {
    const { reservation: recorded, ask, at } = entry;
    const chain = recorded ? this.#chain(ask.accountId) : [];
    if (!recorded || chain.length === 0) return entry;
    const moment = { now: at, steady: at };
    // What other limits have left of the output, they leave here too.
    const outcome = reserve(chain, { ...ask, outputTokens: recorded.outputTokens }, moment);
    if (!outcome.granted) {
      if (outcome.reason === "mustWait") this.#turnOff("waits");
      if (outcome.reason === "budget") this.#stop("refused", agentId, outcome);
      return entry;
    }
    const { reservation, last } = outcome;
    const real = "last" in entry ? entry.last : undefined;
    if (last && recorded.isLast !== true) this.#stop("last", agentId, last);
    if (real && !last) this.#meetReal(agentId, real);
    if (this.#end) return entry;
    if (recorded.outputTokens < ask.outputTokens) {
      const more = reserve(this.#accounts.chain(ask.accountId), ask, moment);
      if (more.granted && more.reservation.outputTokens > recorded.outputTokens) this.#turnOff("longer");
    }
    this.#granted.set(flightOf(entry), { recorded, supposed: reservation });
    return { ...entry, reservation };
  }

  #answer<Entry extends Answered>(entry: Entry): Entry {
    const { settlement } = entry;
    const granted = this.#granted.get(flightOf(entry));
    this.#granted.delete(flightOf(entry));
    if (!granted || !settlement) return entry;
    const { outputTokens } = granted.supposed;
    const isLess = outputTokens < granted.recorded.outputTokens;
    if (isLess && (settlement.usage?.outputTokens ?? 0) > outputTokens) this.#turnOff("shorter");
    return { ...entry, settlement: { ...settlement, reservation: granted.supposed } };
  }

  #countCall(agentId: string, { accountId, at }: RunEntryOf<"tool.started" | "child.spawned">): void {
    const outcome = countToolCall(this.#chain(accountId), agentId, { now: at, steady: at });
    if (!outcome.granted) this.#stop("refused", agentId, outcome);
  }

  /** Something was refused in the run, by the real limit in place of the supposed one or by another. */
  #meetRefusal(agentId: string, entry: RunEntryOf<"intent.refused">): void {
    if (entry.reason === "budget") this.#meetReal(agentId, entry);
    if (entry.reason === "mustWait" && this.#isLower(entry)) this.#turnOff("sooner");
  }

  #meetReal(agentId: string, real: RealLimit): void {
    const { accountId = "", limit = this.#limit, used = 0, max = 0, needed } = real;
    if (real.limit !== this.#limit || !this.#ids.includes(accountId)) return;
    const isTime = limit === "maxActiveMs" || limit === "deadlineAt";
    const kind = this.#isLower(real) ? "unknown" : isTime ? "time" : "refused";
    const met = { accountId, limit, used, needed, max: kind === "unknown" ? max : (this.#maxOf(accountId) ?? max) };
    this.#stop(kind, agentId, met);
  }

  /** Whether the real limit is lower than the supposed one. */
  #isLower({ accountId = "", limit, max = 0 }: RealLimit): boolean {
    return limit === this.#limit && this.#ids.includes(accountId) && (this.#maxOf(accountId) ?? 0) > max;
  }

  #maxOf(accountId: string): number | undefined {
    return this.#accounts.account(accountId)?.limits[this.#limit];
  }

  /** A limit on time is reached between two entries. */
  #runOut(at: number): void {
    const limit = this.#limit;
    if (limit !== "maxActiveMs" && limit !== "deadlineAt") return;
    for (const id of this.#ids) {
      const account = this.#accounts.account(id);
      const limitAt = account?.closedAt === null ? alarmOf(account, limit)?.limitAt : undefined;
      if (!account || limitAt === undefined || limitAt > at || !this.#hasOpenTurn(id)) continue;
      const max = account.limits[limit] ?? 0;
      this.#stop("time", account.agentId, { accountId: id, limit, used: max, max }, limitAt);
      return;
    }
  }

  /** Only work is cut off by time: an agent at rest is refused its next call. */
  #hasOpenTurn(accountId: string): boolean {
    return this.#accounts.accounts.some(
      ({ id, turnId, closedAt }) =>
        turnId !== null && closedAt === null && this.#accounts.chain(id).some((above) => above.id === accountId),
    );
  }

  /** The accounts that pay for a call, with no limit but the supposed one; none where that does not concern it. */
  #chain(accountId: string): Account[] {
    const chain = this.#accounts.chain(accountId);
    if (!chain.some(({ id }) => this.#ids.includes(id))) return [];
    return chain.map((account) => {
      const { strict = false, [this.#limit]: max } = account.limits;
      const isSupposed = max !== undefined && this.#ids.includes(account.id);
      return { ...account, limits: { strict, ...(isSupposed ? { [this.#limit]: max } : {}) } };
    });
  }

  #stop(kind: SupposedEndKind, agentId: string, { accountId, used, max, needed }: Met, at?: number): void {
    const { turnId = null, step = null } = this.#steps.get(agentId) ?? {};
    // What is cut off by time ends before the entry, what is refused with it.
    const count = at === undefined ? this.#count + 1 : this.#count;
    const time = at ?? this.#log.timeOf(this.#count);
    this.#end = { kind, count, time, agentId, turnId, step, accountId, used, max, needed: needed ?? null };
  }

  #turnOff(why: SupposedTurnOff["why"]): void {
    this.#turnsOff ??= { why, count: this.#count + 1, time: this.#log.timeOf(this.#count) };
  }
}
