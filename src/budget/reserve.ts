import { z } from "zod";
import { type Account, usedAt } from "./account.ts";
import { type LimitName, reachedLimit } from "./limits.ts";
import { costBound, outputWithin, priceSchema } from "./price.ts";

/** What a model call asks for before it is made. */
export const reservationAskSchema = z.object({
  /** Names the call in its agent's tree; the same one when it is asked again after a wait. */
  key: z.string(),
  accountId: z.string(),
  agentId: z.string(),
  /** The prompt as counted. */
  promptTokens: z.number().int().nonnegative(),
  /** What the prompt cannot exceed, whatever the provider's tokenizer; reserved where an account of the chain is `strict`. */
  promptBound: z.number().int().nonnegative(),
  /** The most the call may generate. */
  outputTokens: z.number().int().positive(),
  /** Below this it is not worth making: min(outputTokens, 256). */
  minimumOutputTokens: z.number().int().positive(),
  price: priceSchema.nullable(),
  /** Whether this attempt opens a step; retries and metered side calls do not. */
  opensStep: z.boolean(),
});
export type ReservationAsk = z.infer<typeof reservationAskSchema>;

/** `wallNow`: by which deadlines are told, where the clock was set and shows another time than work is counted by. */
type TimedAsk = ReservationAsk & { readonly wallNow?: number };

export const reservationSchema = z.object({
  accountId: z.string(),
  tokens: z.number().int().nonnegative(),
  costMicros: z.number().int().nonnegative(),
  /** The bound the call has to keep to: what was asked, or less where the limit is near. */
  outputTokens: z.number().int().positive(),
  /** Whether a limit on tokens or cost stands behind it, so that the provider has to be told the bound. Absent: no. */
  isBound: z.boolean().optional(),
});
export type Reservation = z.infer<typeof reservationSchema>;

export type ReserveOutcome =
  | { readonly granted: true; readonly reservation: Reservation; readonly accounts: readonly Account[] }
  | {
      readonly granted: false;
      readonly reason: "budget" | "mustWait" | "unpriced";
      readonly accountId: string;
      readonly limit: LimitName;
    };

export const DEFAULT_OUTPUT_TOKENS = 4096;
export const MINIMUM_OUTPUT_TOKENS = 256;

/**
 * Reserves on every account from the turn's (first) to the root's (last), or on none.
 * Exhausted (`budget`): used + prompt + minimum output is over a limit. `mustWait`: only others' reservations stand in
 * the way. `unpriced`: a limit on cost binds, and nobody knows what the call costs. The output is clamped below what
 * was asked only to what the limits themselves leave.
 */
export function reserve(chain: readonly Account[], asked: TimedAsk, now: number): ReserveOutcome {
  const isStrict = chain.some(({ limits }) => limits.strict === true);
  const ask = isStrict ? { ...asked, promptTokens: Math.max(asked.promptTokens, asked.promptBound) } : asked;
  let outputTokens = ask.outputTokens;
  const rooms: Room[] = [];
  for (const account of chain) {
    const limit = blockedBy(account, ask, now);
    if (limit) return { granted: false, reason: "budget", accountId: account.id, limit };
    if (account.limits.maxCostMicros !== undefined && !ask.price) {
      return { granted: false, reason: "unpriced", accountId: account.id, limit: "maxCostMicros" };
    }
    for (const room of outputRooms(account, ask)) {
      const { accountId, limit, alone } = room;
      if (alone < ask.minimumOutputTokens) return { granted: false, reason: "budget", accountId, limit };
      outputTokens = Math.min(outputTokens, alone);
      rooms.push(room);
    }
  }
  const tooSmall = rooms.find((room) => room.now < outputTokens);
  if (tooSmall) {
    return { granted: false, reason: "mustWait", accountId: tooSmall.accountId, limit: tooSmall.limit };
  }
  const costMicros = ask.price ? costBound(ask.price, ask.promptTokens, outputTokens) : 0;
  const tokens = ask.promptTokens + outputTokens;
  return {
    granted: true,
    reservation: { accountId: ask.accountId, tokens, costMicros, outputTokens, isBound: rooms.length > 0 },
    accounts: chain.map((account) => withReservation(account, ask, tokens, costMicros)),
  };
}

function blockedBy(account: Account, ask: TimedAsk, now: number): LimitName | undefined {
  const own = account.agentId === ask.agentId;
  const { maxTokens: _tokens, maxCostMicros: _cost, ...gates } = account.limits;
  const { maxToolCalls: _calls, maxTreeToolCalls: _treeCalls, ...relevant } = gates;
  if (!ask.opensStep || !own) delete relevant.maxSteps;
  if (!ask.opensStep) delete relevant.maxTreeSteps;
  return reachedLimit(relevant, usedAt(account, now), ask.wallNow ?? now);
}

interface Room {
  readonly accountId: string;
  readonly limit: LimitName;
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
    rooms.push({ accountId, limit: "maxTokens", alone, now: alone - reserved.tokens });
  }
  if (limits.maxCostMicros !== undefined && ask.price) {
    const free = limits.maxCostMicros - used.costMicros;
    const alone = outputWithin(ask.price, ask.promptTokens, free);
    const now = outputWithin(ask.price, ask.promptTokens, free - reserved.costMicros);
    rooms.push({ accountId, limit: "maxCostMicros", alone, now });
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
