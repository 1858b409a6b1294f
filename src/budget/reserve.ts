import { z } from "zod";
import { type Account, usedAt } from "./account.ts";
import type { ReservedAmounts } from "./amounts.ts";
import type { LimitName } from "./limits.ts";
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
  const promptTokens = promptOf(chain, asked);
  const ask = promptTokens === asked.promptTokens ? asked : { ...asked, promptTokens };
  let outputTokens = ask.outputTokens;
  const rooms: Room[] = [];
  for (const account of chain) {
    const gate = gateOf(account, ask, now, wallNow);
    if (gate) return { granted: false, reason: "budget", ...metLimit(account, gate, now, wallNow) };
    if (isUnpriced(account, ask)) {
      return { granted: false, reason: "unpriced", ...metLimit(account, "maxCostMicros", now) };
    }
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
  const { limits, used } = account;
  if (ask.opensStep) {
    const isOwn = account.agentId === ask.agentId;
    if (isOwn && limits.maxSteps !== undefined && used.steps >= limits.maxSteps) return "maxSteps";
    if (limits.maxTreeSteps !== undefined && used.treeSteps >= limits.maxTreeSteps) return "maxTreeSteps";
  }
  if (limits.maxActiveMs !== undefined && usedAt(account, now).activeMs >= limits.maxActiveMs) return "maxActiveMs";
  return limits.deadlineAt !== undefined && wallNow >= limits.deadlineAt ? "deadlineAt" : undefined;
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
  const next = { ...ask, opensStep: true };
  for (const account of after) {
    const { tokens, costMicros } = account.used;
    const used = { ...account.used, tokens: tokens + worst.tokens, costMicros: costMicros + worst.costMicros };
    const { maxActiveMs: _work, deadlineAt: _end, ...limits } = account.limits;
    const worn = { ...account, limits, used };
    const tooSmall = roomsOn(worn, next).find(({ alone }) => alone < next.minimumOutputTokens);
    const limit = gateOf(worn, next, 0, 0) ?? tooSmall?.limit;
    if (limit) return metLimit(account, limit, 0);
  }
  return undefined;
}

/** How many output tokens a limit of an account leaves. */
interface Room {
  readonly account: Account;
  readonly limit: "maxTokens" | "maxCostMicros";
  /** Output tokens that fit now; below `alone` exactly where others' reservations stand in the way. */
  readonly now: number;
  /** Output tokens that would fit were nothing else reserved. */
  readonly alone: number;
}

function roomsOn(account: Account, { promptTokens, price }: ReservationAsk): Room[] {
  const rooms: Room[] = [];
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
