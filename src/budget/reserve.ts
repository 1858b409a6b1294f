import { z } from "zod";
import type { Account } from "./account.ts";
import { type LimitName, reachedLimit } from "./limits.ts";
import { costBound, priceSchema } from "./price.ts";

/** What a model call asks for before it is made. */
export const reservationAskSchema = z.object({
  accountId: z.string(),
  agentId: z.string(),
  promptTokens: z.number().int().nonnegative(),
  /** The most the call may generate. */
  outputTokens: z.number().int().positive(),
  /** Below this it is not worth making: min(outputTokens, 256). */
  minimumOutputTokens: z.number().int().positive(),
  price: priceSchema.nullable(),
  /** Whether this attempt opens a step; retries and metered side calls do not. */
  opensStep: z.boolean(),
});
export type ReservationAsk = z.infer<typeof reservationAskSchema>;

export const reservationSchema = z.object({
  accountId: z.string(),
  tokens: z.number().int().nonnegative(),
  costMicros: z.number().int().nonnegative(),
  /** The bound the call has to keep to: what was asked, or less where the limit is near. */
  outputTokens: z.number().int().positive(),
});
export type Reservation = z.infer<typeof reservationSchema>;

export type ReserveOutcome =
  | { readonly granted: true; readonly reservation: Reservation; readonly accounts: readonly Account[] }
  | {
      readonly granted: false;
      readonly reason: "budget" | "mustWait";
      readonly accountId: string;
      readonly limit: LimitName;
    };

export const DEFAULT_OUTPUT_TOKENS = 4096;
export const MINIMUM_OUTPUT_TOKENS = 256;

/**
 * Reserves on every account from the turn's (first) to the root's (last), or on none.
 * Exhausted (`budget`): used + prompt + minimum output is over a limit. `mustWait`: only others' reservations stand in
 * the way. The output is clamped below what was asked only where no other reservation stands in the way.
 */
export function reserve(chain: readonly Account[], ask: ReservationAsk, now: number): ReserveOutcome {
  let outputTokens = ask.outputTokens;
  let waitFor: { accountId: string; limit: LimitName } | undefined;
  for (const account of chain) {
    const refusal = blockedBy(account, ask, now);
    if (refusal) return { granted: false, reason: "budget", accountId: account.id, limit: refusal };
    for (const [limit, room] of outputRooms(account, ask)) {
      if (room.alone < ask.minimumOutputTokens) {
        return { granted: false, reason: "budget", accountId: account.id, limit };
      }
      if (room.now >= ask.outputTokens) continue;
      if (room.others) waitFor ??= { accountId: account.id, limit };
      else outputTokens = Math.min(outputTokens, room.alone);
    }
  }
  if (waitFor) return { granted: false, reason: "mustWait", ...waitFor };
  const costMicros = ask.price ? costBound(ask.price, ask.promptTokens, outputTokens) : 0;
  const tokens = ask.promptTokens + outputTokens;
  return {
    granted: true,
    reservation: { accountId: ask.accountId, tokens, costMicros, outputTokens },
    accounts: chain.map((account) => withReservation(account, ask, tokens, costMicros)),
  };
}

function blockedBy(account: Account, ask: ReservationAsk, now: number): LimitName | undefined {
  const own = account.agentId === ask.agentId;
  const { maxTokens: _tokens, maxCostMicros: _cost, ...gates } = account.limits;
  const { maxToolCalls: _calls, maxTreeToolCalls: _treeCalls, ...relevant } = gates;
  if (!ask.opensStep || !own) delete relevant.maxSteps;
  if (!ask.opensStep) delete relevant.maxTreeSteps;
  return reachedLimit(relevant, account.used, now);
}

interface Room {
  /** Output tokens that fit now. */
  readonly now: number;
  /** Output tokens that would fit were nothing else reserved. */
  readonly alone: number;
  readonly others: boolean;
}

function outputRooms(account: Account, ask: ReservationAsk): [LimitName, Room][] {
  const rooms: [LimitName, Room][] = [];
  const { maxTokens, maxCostMicros } = account.limits;
  if (maxTokens !== undefined) {
    const alone = maxTokens - account.used.tokens - ask.promptTokens;
    const { tokens } = account.reserved;
    rooms.push(["maxTokens", { alone, now: alone - tokens, others: tokens > 0 }]);
  }
  if (maxCostMicros !== undefined && ask.price) {
    const { price } = ask;
    const fits = (micros: number): number => {
      const left = micros - price.inputPerMillion * ask.promptTokens;
      if (left < 0) return -1;
      return price.outputPerMillion === 0 ? Number.MAX_SAFE_INTEGER : Math.floor(left / price.outputPerMillion);
    };
    const free = maxCostMicros - account.used.costMicros;
    const { costMicros } = account.reserved;
    rooms.push(["maxCostMicros", { alone: fits(free), now: fits(free - costMicros), others: costMicros > 0 }]);
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
