import { z } from "zod";
import type { DeepReadonly } from "../base/index.ts";
import { type Account, activeMsAt } from "./account.ts";
import type { ReservedAmounts } from "./amounts.ts";
import { costOfCall, hasRoomFor, leastOfCall, type Room, roomsOn, wholeOf } from "./call-room.ts";
import type { LimitName } from "./limits.ts";
import { type MetLimit, metLimit } from "./met-limit.ts";
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
export type Reservation = DeepReadonly<z.infer<typeof reservationSchema>>;

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
  const promptTokens = promptOf(chain, asked);
  const ask = promptTokens === asked.promptTokens ? asked : { ...asked, promptTokens };
  const whole = wholeOf(ask);
  let { outputTokens } = ask;
  let isBound = false;
  const rooms: Room[] = [];
  for (const account of chain) {
    const gate = gateOf(account, ask, now, wallNow);
    if (gate) return { granted: false, reason: "budget", ...metLimit(account, gate, now, wallNow) };
    if (isUnpriced(account, ask)) {
      return { granted: false, reason: "unpriced", ...metLimit(account, "maxCostMicros", now) };
    }
    if (account.limits.maxTokens !== undefined || account.limits.maxCostMicros !== undefined) isBound = true;
    // Nearly always there is room for all that was asked, on every account: then nothing has to be divided.
    if (hasRoomFor(account, whole)) continue;
    for (const room of roomsOn(account, ask)) {
      if (room.alone < ask.minimumOutputTokens) {
        return { granted: false, reason: "budget", ...metLimit(account, room.limit, now) };
      }
      outputTokens = Math.min(outputTokens, room.alone);
      rooms.push(room);
    }
  }
  const [tooSmall, ...others] = rooms.filter((room) => room.now < outputTokens);
  if (tooSmall) {
    const blockedOn = [...new Set([tooSmall, ...others].map(({ account }) => account.id))];
    return { granted: false, reason: "mustWait", blockedOn, ...metLimit(tooSmall.account, tooSmall.limit, now) };
  }
  const tokens = ask.promptTokens + outputTokens;
  const costMicros = tokens === whole.tokens ? whole.costMicros : costOfCall(ask, outputTokens);
  const accounts = chain.map((account) => withReservation(account, ask, tokens, costMicros));
  const last = ask.finalAnswer === true ? lastFor(accounts, ask, { tokens, costMicros }) : undefined;
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

/** The prompt as it is reserved: at its hard bound where an account of the chain is strict. */
export function promptOf(chain: readonly Account[], { promptTokens, promptBound }: ReservationAsk): number {
  const isStrict = chain.some(({ limits }) => limits.strict === true);
  return isStrict ? Math.max(promptTokens, promptBound) : promptTokens;
}

/**
 * The limit that keeps any call from being made on the account, whatever its size: steps of its own agent and of the tree,
 * then time. What is reserved does not count.
 */
export function gateOf(
  account: Account,
  ask: Pick<ReservationAsk, "agentId" | "opensStep">,
  now: number,
  wallNow: number,
): LimitName | undefined {
  const { limits } = account;
  const spent = ask.opensStep ? stepLimitOf(account, ask.agentId) : undefined;
  if (spent) return spent;
  if (limits.maxActiveMs !== undefined && activeMsAt(account, now) >= limits.maxActiveMs) return "maxActiveMs";
  return limits.deadlineAt !== undefined && wallNow >= limits.deadlineAt ? "deadlineAt" : undefined;
}

/** The limit that leaves the agent no step on the account. */
function stepLimitOf({ agentId, limits, used }: Account, spender: string): LimitName | undefined {
  const isOwn = agentId === spender;
  if (isOwn && limits.maxSteps !== undefined && used.steps >= limits.maxSteps) return "maxSteps";
  return limits.maxTreeSteps !== undefined && used.treeSteps >= limits.maxTreeSteps ? "maxTreeSteps" : undefined;
}

/** Whether the account limits the cost, and nobody knows what the call costs. */
export function isUnpriced({ limits }: Account, { price }: ReservationAsk): boolean {
  return limits.maxCostMicros !== undefined && !price;
}

/**
 * The limit for which the same prompt with the least output would be refused once this call has used all it may. What others
 * have reserved does not count: a call waits for it.
 */
function lastFor(after: readonly Account[], ask: ReservationAsk, worst: ReservedAmounts): MetLimit | undefined {
  const least = leastOfCall(ask);
  for (const account of after) {
    const limit = stepLimitOf(account, ask.agentId) ?? amountLimitOf(account, worst, least);
    if (limit) return metLimit(account, limit, 0);
  }
  return undefined;
}

/** The limit that leaves no room for both calls on top of what is used. */
function amountLimitOf(
  { limits, used }: Account,
  first: ReservedAmounts,
  second: ReservedAmounts,
): LimitName | undefined {
  const { maxTokens = Number.POSITIVE_INFINITY, maxCostMicros = Number.POSITIVE_INFINITY } = limits;
  if (used.tokens + first.tokens + second.tokens > maxTokens) return "maxTokens";
  return used.costMicros + first.costMicros + second.costMicros > maxCostMicros ? "maxCostMicros" : undefined;
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
