import type { MetLimit, Reservation } from "../../budget/index.ts";

/** Whether the accounts let an intent be carried out; null: it reserves nothing. */
export type Judgement =
  | { readonly granted: true; readonly reservation: Reservation | null; readonly last?: MetLimit }
  | ({ readonly granted: false; readonly reason: "budget" | "mustWait" | "unpriced" } & MetLimit);
