import { z } from "zod";
import { type Account, usedAt } from "./account.ts";
import type { ReservedAmounts } from "./amounts.ts";
import { type LimitName, reachedLimit } from "./limits.ts";
import { type MetLimit, metLimit } from "./met-limit.ts";
import { costBound, outputWithin } from "./price.ts";
import type { ReservationAsk } from "./reservation-ask.ts";

export const reservationSchema = z.object({
  accountId: z.string(),
  tokens: z.number().int().nonnegative(),
  costMicros: z.number().int().nonnegative(),
  /** The bound the call has to keep to: what was asked, or less where the limit is near. */
  outputTokens: z.number().int().positive(),
  /** Whether a limit on tokens or cost stands behind it, so that the provider has to be told the bound. Absent: no. */
  isBound: z.boolean().optional(),
  model: z.string(),
  /**
   * Whether another call after it might not be granted: where this one uses all that it may, some account of the chain has
   * no room left for the same prompt with the least output, or no step. Only where it was asked for. Absent: no.
   */
  isLast: z.boolean().optional(),
  /** Whether nobody knows what the call costs. Absent: its price is known. */
  isUnpriced: z.boolean().optional(),
});
export type Reservation = z.infer<typeof reservationSchema>;

export type ReserveOutcome =
  | {
      readonly granted: true;
      readonly reservation: Reservation;
      readonly accounts: readonly Account[];
      /** The limit for which the reservation is the last one, without this call's own tokens and cost. */
      readonly last?: MetLimit;
    }
  | MustWait
  | Exhausted;

/** `blockedOn`: the accounts on which others stand in the way. */
export type MustWait = {
  readonly granted: false;
  readonly reason: "mustWait";
  readonly blockedOn: readonly string[];
} & MetLimit;

type Exhausted = { readonly granted: false; readonly reason: "budget" | "unpriced" } & MetLimit;

export const DEFAULT_OUTPUT_TOKENS = 4096;
export const MINIMUM_OUTPUT_TOKENS = 256;

/**
 * Reserves on every account from the turn's (first) to the root's (last), or on none.
 * Exhausted (`budget`): used + prompt + minimum output is over a limit. `mustWait`: only others' reservations stand in
 * the way. `unpriced`: a limit on cost binds, and nobody knows what the call costs. The output is clamped below what
 * was asked only to what the limits themselves leave.
 * Deadlines are told by `wallNow`, working time by `now`.
 */
export function reserve(
  chain: readonly Account[],
  asked: ReservationAsk,
  now: number,
  wallNow: number = now,
): ReserveOutcome {
  const ask = { ...asked, promptTokens: promptOf(chain, asked) };
  let outputTokens = ask.outputTokens;
  const rooms: Room[] = [];
  for (const account of chain) {
    const exhausted = exhaustedOn(account, ask, { now, wallNow });
    if (exhausted) return exhausted;
    for (const room of outputRooms(account, ask)) {
      outputTokens = Math.min(outputTokens, room.alone);
      rooms.push(room);
    }
  }
  const [tooSmall, ...others] = rooms.filter((room) => room.now < outputTokens);
  if (tooSmall) {
    const blockedOn = [...new Set([tooSmall, ...others].map(({ met }) => met.accountId))];
    return { granted: false, reason: "mustWait", blockedOn, ...tooSmall.met };
  }
  const costMicros = ask.price ? costBound(ask.price, ask.promptTokens, outputTokens) : 0;
  const tokens = ask.promptTokens + outputTokens;
  const accounts = chain.map((account) => withReservation(account, ask, tokens, costMicros));
  const last = ask.finalAnswer === true ? lastFor(accounts, ask, { tokens, costMicros }) : undefined;
  const { accountId, model } = ask;
  const isBound = rooms.length > 0;
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

/** The prompt as it is reserved: at its hard bound where an account of the chain is strict. */
export function promptOf(chain: readonly Account[], { promptTokens, promptBound }: ReservationAsk): number {
  const isStrict = chain.some(({ limits }) => limits.strict === true);
  return isStrict ? Math.max(promptTokens, promptBound) : promptTokens;
}

interface Times {
  readonly now: number;
  readonly wallNow: number;
}

/** Why this account does not let the call be made, were nothing reserved on it. */
function exhaustedOn(account: Account, ask: ReservationAsk, times: Times): Exhausted | undefined {
  const { id: accountId, limits, used } = account;
  const limit = blockedBy(account, ask, times);
  if (limit) return { granted: false, reason: "budget", ...metLimit(account, limit, times.now, times.wallNow) };
  if (limits.maxCostMicros !== undefined && !ask.price) {
    const max = limits.maxCostMicros;
    return { granted: false, reason: "unpriced", accountId, limit: "maxCostMicros", used: used.costMicros, max };
  }
  const tooSmall = outputRooms(account, ask).find(({ alone }) => alone < ask.minimumOutputTokens);
  return tooSmall && { granted: false, reason: "budget", ...tooSmall.met };
}

/**
 * The limit for which the same prompt with the least output would be refused once this call has used all it may. What others
 * have reserved does not count: a call waits for it.
 */
function lastFor(after: readonly Account[], ask: ReservationAsk, worst: ReservedAmounts): MetLimit | undefined {
  const next = { ...ask, opensStep: true };
  for (const account of after) {
    const { tokens, costMicros } = account.used;
    const used = { ...account.used, tokens: tokens + worst.tokens, costMicros: costMicros + worst.costMicros };
    const { maxActiveMs: _work, deadlineAt: _end, ...limits } = account.limits;
    const exhausted = exhaustedOn({ ...account, limits, used }, next, { now: 0, wallNow: 0 });
    if (exhausted) return metLimit(account, exhausted.limit, 0);
  }
  return undefined;
}

function blockedBy(account: Account, ask: ReservationAsk, { now, wallNow }: Times): LimitName | undefined {
  const own = account.agentId === ask.agentId;
  const { maxTokens: _tokens, maxCostMicros: _cost, ...gates } = account.limits;
  const { maxToolCalls: _calls, maxTreeToolCalls: _treeCalls, ...relevant } = gates;
  if (!ask.opensStep || !own) delete relevant.maxSteps;
  if (!ask.opensStep) delete relevant.maxTreeSteps;
  return reachedLimit(relevant, usedAt(account, now), wallNow);
}

interface Room {
  readonly met: MetLimit;
  /** Output tokens that fit now; below `alone` exactly where others' reservations stand in the way. */
  readonly now: number;
  /** Output tokens that would fit were nothing else reserved. */
  readonly alone: number;
}

function outputRooms(account: Account, ask: ReservationAsk): Room[] {
  const rooms: Room[] = [];
  const { id: accountId, limits, used, reserved } = account;
  if (limits.maxTokens !== undefined) {
    const alone = limits.maxTokens - used.tokens - ask.promptTokens;
    const met = { accountId, limit: "maxTokens", used: used.tokens, max: limits.maxTokens } as const;
    rooms.push({ met, alone, now: alone - reserved.tokens });
  }
  if (limits.maxCostMicros !== undefined && ask.price) {
    const free = limits.maxCostMicros - used.costMicros;
    const alone = outputWithin(ask.price, ask.promptTokens, free);
    const now = outputWithin(ask.price, ask.promptTokens, free - reserved.costMicros);
    const met = { accountId, limit: "maxCostMicros", used: used.costMicros, max: limits.maxCostMicros } as const;
    rooms.push({ met, alone, now });
  }
  return rooms;
}

function withReservation(account: Account, ask: ReservationAsk, tokens: number, costMicros: number): Account {
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
