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
import { isInherited, type RunEntry, type RunEntryOf, type RunLog } from "./run-log.ts";

export type { SupposedLimit };

/**
 * How the run would have ended under the supposed limit. `refused`: a call is refused; `time`: work is cut off by a time
 * limit; `last`: a call is the last one and is asked for a final answer; `unknown`: the lower, real limit ended the run, so
 * the journal does not show what would have followed.
 */
export type SupposedEndKind = "refused" | "time" | "last" | "unknown";

/** The first moment at which the supposed limit ends work. */
export interface SupposedEnd {
  readonly kind: SupposedEndKind;
  /** Number of entries up to that moment. */
  readonly count: number;
  readonly time: number;
  /** The agent whose work ends, with the turn and step; `null` if they are not known. */
  readonly agentId: string;
  readonly turnId: string | null;
  readonly step: number | null;
  /** The account that refuses. */
  readonly accountId: string;
  /**
   * The limit's figures, in its unit: the supposed limit, or the real one for `unknown`. For a deadline, points in time.
   */
  readonly used: number;
  readonly max: number;
  /** The least amount of the limit that the refused call would have needed; `null` for a time limit. */
  readonly needed: number | null;
}

/** The first moment at which the run would have differed without ending. After it, the journal is only an estimate. */
export interface SupposedTurnOff {
  /**
   * `waits`: a call would have waited for other calls' reservations. `shorter`: an answer would have exceeded its
   * reservation. `sooner`: a call that waited would not have. `longer`: an answer that got less than it asked for would
   * have got more.
   */
  readonly why: "waits" | "shorter" | "sooner" | "longer";
  readonly count: number;
  readonly time: number;
}

/** The outcome of a run under another limit, as far as its journal shows. */
export interface SupposedRun {
  /** `null` if the limit would have ended nothing so far. */
  readonly end: SupposedEnd | null;
  readonly turnsOff: SupposedTurnOff | null;
  /** The largest sum of used and reserved amounts until the end, in the limit's unit. 0 for a deadline. */
  readonly most: number;
}

/** A granted call in flight: its reservation in the run, and the one it would have had. */
interface Granted {
  readonly recorded: Reservation;
  readonly supposed: Reservation;
}

type Asked = RunEntryOf<"model.requested" | "generate.requested">;
type Answered = RunEntryOf<"model.responded" | "generate.responded" | "model.failed" | "generate.failed">;
type Met = MetLimit & { readonly needed?: number | undefined };
type RealLimit = { readonly [Name in keyof Met]?: Met[Name] | undefined };

/**
 * Folds a journal under a limit that an account did not have, by the rules of `budget`: every granted call is requested
 * from the accounts again.
 * Owns: its fold of the accounts. Does not own: the log.
 *
 * 1. Only the supposed limit refuses; the other limits grant what they granted in the run.
 * 2. A call that would have been granted less reserves less, and is settled with its actual use.
 * 3. An entry is folded once; new entries continue the fold. Nothing is folded after the end.
 */
export class Supposition {
  readonly #log: RunLog;
  readonly #accounts: AccountFold;
  readonly #limit: LimitName;
  /** The account, and the account that receives its remainder when its turn ends. */
  readonly #ids: readonly string[];
  readonly #granted = new Map<string, Granted>();
  readonly #steps = new Map<string, { readonly turnId: string; readonly step: number | null }>();
  #count: number;
  #end: SupposedEnd | null = null;
  #turnsOff: SupposedTurnOff | null = null;
  #most = 0;

  /** `accounts`: the accounts before the first entry of the log. The supposition takes ownership of them. */
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

  /** Folds up to `count` entries in all, at most `entries` now. Returns whether more are left. */
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

  /** Advances the time from the last entry to `until`. */
  passTime(until: number): void {
    if (this.#end === null) this.#runOut(until);
  }

  #fold(agentId: string, entry: RunEntry): void {
    // The past of a fork was paid by its origin.
    if (isInherited(this.#log, entry)) return this.#accounts.apply(agentId, entry);
    if (this.#log.agents[0]?.origin) this.#accounts.beginFork();
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

  /** The entry as it would have been under the supposed limit. */
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
    // Other limits leave the same output tokens as in the run.
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

  /** Handles a refusal in the run, by the real limit or by another one. */
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

  /** Ends the run if a time limit is reached before `at`, that is, between two entries. */
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

  /** Time cuts off only ongoing work. An idle agent is refused its next call instead. */
  #hasOpenTurn(accountId: string): boolean {
    return this.#accounts.accounts.some(
      ({ id, turnId, closedAt }) =>
        turnId !== null && closedAt === null && this.#accounts.chain(id).some((above) => above.id === accountId),
    );
  }

  /** The accounts that pay for a call, with only the supposed limit. Empty if that limit does not apply to the call. */
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
    // Work that time cuts off ends before the entry; a refused call ends with the entry.
    const count = at === undefined ? this.#count + 1 : this.#count;
    const time = at ?? this.#log.timeOf(this.#count);
    this.#end = { kind, count, time, agentId, turnId, step, accountId, used, max, needed: needed ?? null };
  }

  #turnOff(why: SupposedTurnOff["why"]): void {
    this.#turnsOff ??= { why, count: this.#count + 1, time: this.#log.timeOf(this.#count) };
  }
}
