import type { Budget } from "../../src/budget/index.ts";
import {
  type Account,
  limitsOf,
  type Moment,
  type NewAccount,
  openAccount,
  type ReservationAsk,
} from "../../src/budget/index.ts";

export function account(budget: Budget = {}, changes: Partial<NewAccount> = {}): Account {
  return openAccount({ id: "a", agentId: "agent", turnId: null, parentId: null, limits: limitsOf(budget), ...changes });
}

export function ask(changes: Partial<ReservationAsk> = {}): ReservationAsk {
  return {
    accountId: "a",
    agentId: "agent",
    key: "agent:1",
    promptTokens: 100,
    promptBound: 100,
    outputTokens: 400,
    minimumOutputTokens: 256,
    price: null,
    opensStep: true,
    model: "m",
    ...changes,
  };
}

/** A moment with equal wall-clock and elapsed time. */
export function momentAt(time: number): Moment {
  return { now: time, steady: time };
}
