import type { Account } from "./account.ts";
import type { ReservedAmounts } from "./amounts.ts";
import { costBound, outputWithin } from "./price.ts";
import type { ReservationAsk } from "./reservation-ask.ts";

/** What one call takes, and the room that an account has for it: pure figures. The prompt is taken as the ask has it. */

/** All that the call may use. */
export function wholeOf(ask: ReservationAsk): ReservedAmounts {
  const { promptTokens, outputTokens, minimumOutputTokens } = ask;
  const most = Math.max(outputTokens, minimumOutputTokens);
  return { tokens: promptTokens + most, costMicros: costOfCall(ask, most) };
}

/** The same with the least output. */
export function leastOfCall(ask: ReservationAsk): ReservedAmounts {
  const { promptTokens, minimumOutputTokens } = ask;
  return { tokens: promptTokens + minimumOutputTokens, costMicros: costOfCall(ask, minimumOutputTokens) };
}

/** Upper bound of what it costs; 0 where nobody knows. */
export function costOfCall({ price, promptTokens }: ReservationAsk, outputTokens: number): number {
  return price ? costBound(price, promptTokens, outputTokens) : 0;
}

/** Whether this fits beside all that is used and reserved. */
export function hasRoomFor({ limits, used, reserved }: Account, { tokens, costMicros }: ReservedAmounts): boolean {
  const { maxTokens = Number.POSITIVE_INFINITY, maxCostMicros = Number.POSITIVE_INFINITY } = limits;
  return (
    used.tokens + reserved.tokens + tokens <= maxTokens &&
    used.costMicros + reserved.costMicros + costMicros <= maxCostMicros
  );
}

/** How many output tokens a limit of an account leaves. */
export interface Room {
  readonly account: Account;
  readonly limit: "maxTokens" | "maxCostMicros";
  /** Output tokens that fit now; below `alone` exactly where others' reservations stand in the way. */
  readonly now: number;
  /** Output tokens that would fit were nothing else reserved. */
  readonly alone: number;
}

/** Of each limit on tokens and cost that the account has. */
export function roomsOn(account: Account, { promptTokens, price }: ReservationAsk): Room[] {
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
