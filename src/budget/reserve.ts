import { activeMsAt, type MetLimit, metLimit, type Moment } from "./account.ts";
import type { LimitName } from "./limit-names.ts";
import { costBound, hasLongWriteRate, outputWithin, withoutLongWrites } from "./price.ts";
import type { Account, Price, Reservation, ReservationAsk, ReservedAmounts } from "./schemas.ts";

export type ReserveOutcome =
  | {
      readonly granted: true;
      readonly reservation: Reservation;
      readonly accounts: readonly Account[];
      /** The limit that makes this the last call, without this call's own tokens and cost. */
      readonly last?: MetLimit;
    }
  | MustWait
  | Exhausted;

/** `blockedOn`: the accounts on which reservations of other calls leave too little. */
export type MustWait = {
  readonly granted: false;
  readonly reason: "mustWait";
  readonly blockedOn: readonly string[];
} & MetLimit;

/** `needed`: the minimum that the call would have used of the limit; absent for time limits and for unpriced calls. */
type Exhausted = {
  readonly granted: false;
  readonly reason: "budget" | "unpriced";
  readonly needed?: number;
} & MetLimit;

export const DEFAULT_OUTPUT_TOKENS = 4096;
export const MINIMUM_OUTPUT_TOKENS = 256;

/**
 * Reserves on every account from the turn's (first) to the root's (last), or on none.
 * Refusals: `budget`, if used + prompt + minimum output exceeds a limit; `mustWait`, if only reservations of other calls leave too
 * little; `unpriced`, if a limit on cost applies and the call's price is unknown. The output is reduced only to the amount that the
 * limits allow, not to the amount that other reservations leave.
 */
export function reserve(chain: readonly Account[], asked: ReservationAsk, moment: Moment): ReserveOutcome {
  const promptTokens = promptOf(chain, asked);
  const ask = promptTokens === asked.promptTokens ? asked : { ...asked, promptTokens };
  const whole = wholeOf(ask);
  let { outputTokens } = ask;
  let isBound = false;
  const rooms: OutputHeadroom[] = [];
  for (const account of chain) {
    const gate = gateOf(account, ask, moment);
    if (gate) {
      const needed = gate === "maxSteps" || gate === "maxTreeSteps" ? { needed: 1 } : {};
      return { granted: false, reason: "budget", ...metLimit(account, gate, moment), ...needed };
    }
    if (isUnpriced(account, ask)) {
      return { granted: false, reason: "unpriced", ...metLimit(account, "maxCostMicros", moment) };
    }
    if (account.limits.maxTokens !== undefined || account.limits.maxCostMicros !== undefined) isBound = true;
    // The usual case: the complete request fits.
    if (hasRoomFor(account, whole)) continue;
    for (const room of roomsOn(account, ask)) {
      if (room.alone < ask.minimumOutputTokens) {
        const needed = leastOfCall(ask)[room.limit === "maxTokens" ? "tokens" : "costMicros"];
        return { granted: false, reason: "budget", ...metLimit(account, room.limit, moment), needed };
      }
      outputTokens = Math.min(outputTokens, room.alone);
      rooms.push(room);
    }
  }
  const [tooSmall, ...others] = rooms.filter((room) => room.now < outputTokens);
  if (tooSmall) {
    const blockedOn = [...new Set([tooSmall, ...others].map(({ account }) => account.id))];
    return { granted: false, reason: "mustWait", blockedOn, ...metLimit(tooSmall.account, tooSmall.limit, moment) };
  }
  const tokens = ask.promptTokens + outputTokens;
  const costMicros = tokens === whole.tokens ? whole.costMicros : costOfCall(ask, outputTokens);
  const accounts = chain.map((account) => withReservation(account, ask, { tokens, costMicros }));
  const last = ask.finalAnswer === true ? lastFor(accounts, ask, { tokens, costMicros }, moment) : undefined;
  const { accountId, model } = ask;
  const unpriced = ask.price ? {} : { isUnpriced: true };
  return {
    granted: true,
    reservation: {
      accountId,
      model,
      tokens,
      costMicros,
      outputTokens,
      isBound,
      ...unpriced,
      ...(last ? { isLast: true } : {}),
    },
    accounts,
    ...(last ? { last } : {}),
  };
}

/** The tokens to reserve for the prompt: its hard upper bound if an account of the chain is strict. */
export function promptOf(chain: readonly Account[], { promptTokens, promptBound }: ReservationAsk): number {
  const isStrict = chain.some(({ limits }) => limits.strict === true);
  return isStrict ? Math.max(promptTokens, promptBound) : promptTokens;
}

/**
 * The limit that refuses a call of any size on the account: steps of its own agent and of the tree, then time. Reservations are ignored.
 */
export function gateOf(
  account: Account,
  ask: Pick<ReservationAsk, "agentId" | "opensStep">,
  { now, steady }: Moment,
): LimitName | undefined {
  const { limits } = account;
  const spent = ask.opensStep ? stepLimitOf(account, ask.agentId) : undefined;
  if (spent) return spent;
  if (limits.maxActiveMs !== undefined && activeMsAt(account, steady) >= limits.maxActiveMs) return "maxActiveMs";
  return limits.deadlineAt !== undefined && now >= limits.deadlineAt ? "deadlineAt" : undefined;
}

/** The limit that allows the agent no further step. */
function stepLimitOf({ agentId, limits, used }: Account, spender: string): LimitName | undefined {
  const isOwn = agentId === spender;
  if (isOwn && limits.maxSteps !== undefined && used.steps >= limits.maxSteps) return "maxSteps";
  return limits.maxTreeSteps !== undefined && used.treeSteps >= limits.maxTreeSteps ? "maxTreeSteps" : undefined;
}

/** Whether the account limits the cost but the call's price is unknown. */
export function isUnpriced({ limits }: Account, { price }: ReservationAsk): boolean {
  return limits.maxCostMicros !== undefined && !price;
}

/**
 * The limit that would refuse the same prompt with the minimum output after this call has used its complete reservation. Reservations of
 * other calls are ignored, because a call waits for them.
 */
function lastFor(
  after: readonly Account[],
  ask: ReservationAsk,
  worst: ReservedAmounts,
  moment: Moment,
): MetLimit | undefined {
  const least = leastOfCall(ask);
  for (const account of after) {
    const limit = stepLimitOf(account, ask.agentId) ?? amountLimitOf(account, worst, least);
    if (limit) return metLimit(account, limit, moment);
  }
  return undefined;
}

/** The limit that does not allow both calls. */
function amountLimitOf(
  { limits, used }: Account,
  first: ReservedAmounts,
  second: ReservedAmounts,
): LimitName | undefined {
  const { maxTokens = Number.POSITIVE_INFINITY, maxCostMicros = Number.POSITIVE_INFINITY } = limits;
  if (used.tokens + first.tokens + second.tokens > maxTokens) return "maxTokens";
  return used.costMicros + first.costMicros + second.costMicros > maxCostMicros ? "maxCostMicros" : undefined;
}

/** The account after granting a call: its amounts are reserved, and its step is counted. */
export function withReservation(
  account: Account,
  ask: Pick<ReservationAsk, "agentId" | "opensStep">,
  { tokens, costMicros }: ReservedAmounts,
): Account {
  const step = ask.opensStep ? 1 : 0;
  const ownStep = account.agentId === ask.agentId ? step : 0;
  return {
    ...account,
    used: {
      ...account.used,
      steps: account.used.steps + ownStep,
      treeSteps: account.used.treeSteps + step,
    },
    reserved: { tokens: account.reserved.tokens + tokens, costMicros: account.reserved.costMicros + costMicros },
  };
}

/** The maximum that the call may use. */
export function wholeOf(ask: ReservationAsk): ReservedAmounts {
  const { promptTokens, outputTokens, minimumOutputTokens } = ask;
  const most = Math.max(outputTokens, minimumOutputTokens);
  return { tokens: promptTokens + most, costMicros: costOfCall(ask, most) };
}

/** The same with the minimum output. */
export function leastOfCall(ask: ReservationAsk): ReservedAmounts {
  const { promptTokens, minimumOutputTokens } = ask;
  return { tokens: promptTokens + minimumOutputTokens, costMicros: costOfCall(ask, minimumOutputTokens) };
}

/** Upper bound of the call's cost; 0 if its price is unknown. */
export function costOfCall(ask: ReservationAsk, outputTokens: number): number {
  const price = reservedPrice(ask);
  return price ? costBound(price, ask.promptTokens, outputTokens) : 0;
}

/** The rates that the call may reach. */
function reservedPrice({ price, writesLongCache }: ReservationAsk): Price | null {
  return price && writesLongCache !== true && hasLongWriteRate(price) ? withoutLongWrites(price) : price;
}

/** Whether the amounts fit beside the used and reserved ones. */
export function hasRoomFor({ limits, used, reserved }: Account, { tokens, costMicros }: ReservedAmounts): boolean {
  const { maxTokens = Number.POSITIVE_INFINITY, maxCostMicros = Number.POSITIVE_INFINITY } = limits;
  return (
    used.tokens + reserved.tokens + tokens <= maxTokens &&
    used.costMicros + reserved.costMicros + costMicros <= maxCostMicros
  );
}

/** The output tokens that a limit of an account allows. */
export interface OutputHeadroom {
  readonly account: Account;
  readonly limit: "maxTokens" | "maxCostMicros";
  /** Output tokens that fit now; below `alone` only if other reservations use a part. */
  readonly now: number;
  /** Output tokens that would fit if nothing else were reserved. */
  readonly alone: number;
}

/** One entry for each limit on tokens and cost of the account. */
export function roomsOn(account: Account, ask: ReservationAsk): OutputHeadroom[] {
  const { promptTokens } = ask;
  const price = reservedPrice(ask);
  const rooms: OutputHeadroom[] = [];
  const { limits, used, reserved } = account;
  if (limits.maxTokens !== undefined) {
    const alone = limits.maxTokens - used.tokens - promptTokens;
    rooms.push({ account, limit: "maxTokens", alone, now: alone - reserved.tokens });
  }
  if (limits.maxCostMicros !== undefined && price) {
    const free = limits.maxCostMicros - used.costMicros;
    const alone = outputWithin(price, promptTokens, free);
    const now = reserved.costMicros === 0 ? alone : outputWithin(price, promptTokens, free - reserved.costMicros);
    rooms.push({ account, limit: "maxCostMicros", alone, now });
  }
  return rooms;
}
