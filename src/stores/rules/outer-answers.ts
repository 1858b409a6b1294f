import type { Account, BudgetWarning, MetLimit, Reservation, ReservedAmounts } from "../../budget/index.ts";

/** Whether the accounts allow an intent; the reservation is `null` if the intent reserves nothing. */
export type Judgement =
  | { readonly granted: true; readonly reservation: Reservation | null; readonly last?: MetLimit }
  | ({
      readonly granted: false;
      readonly reason: "budget" | "mustWait" | "unpriced";
      /** The minimum that the intent would have used of the limit. */
      readonly needed?: number;
      /** When an account above the root renews, in milliseconds since the epoch. */
      readonly renewsAt?: number;
      /** Whether the account's limits ask a person instead of ending the turn. */
      readonly asks?: boolean;
    } & MetLimit);

/** A granted reservation above the root; `reservation` is `null` for a tool call. */
export interface OuterHold {
  readonly granted: true;
  readonly id: string;
  readonly reservation: Reservation | null;
}

/** What the accounts above the root answer to one intent. */
export type OuterAnswer = OuterHold | Extract<Judgement, { granted: false }>;

/** The answers to a batch, by the seq of its intents. */
export interface OuterAnswers {
  readonly bySeq: ReadonlyMap<number, OuterAnswer>;
  readonly warnings: readonly BudgetWarning[];
  /** The accounts that were changed. */
  readonly accounts: readonly Account[];
  /** Agents to post to, since their reservation may succeed now. */
  readonly woken: readonly string[];
}

/** How a hold ends after the commit of its batch. */
export interface HoldEnd {
  readonly id: string;
  /** `return`: its intent was not granted. `keep`: only the row of a counted tool call goes. Amounts: less was reserved in the tree. */
  readonly as: "return" | "keep" | ReservedAmounts;
}
