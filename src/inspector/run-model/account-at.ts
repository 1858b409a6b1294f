import type { Account, Amounts, ReservedAmounts } from "../../budget/index.ts";
import type { Entry, EntryType } from "../../state/index.ts";

type WithoutEpoch<T> = T extends Entry ? Omit<T, "epoch"> : never;
/** An entry of the journal, or one of the feed, which comes without its epoch and its contents. */
export type FoldedEntry = WithoutEpoch<Entry>;
export type FoldedEntryOf<Type extends EntryType> = Extract<FoldedEntry, { type: Type }>;

/** What an account was opened with. */
export type AccountTerms = Pick<Account, "id" | "agentId" | "turnId" | "parentId" | "limits" | "openedAt">;

/** A stored account, of which the terms are wanted. Its limits may have changed since it was opened. */
export type StoredTerms = AccountTerms & Pick<Account, "firstLimits">;

export function termsOf({ id, agentId, turnId, parentId, limits, firstLimits, openedAt }: StoredTerms): AccountTerms {
  return { id, agentId, turnId, parentId, limits: firstLimits ?? limits, openedAt };
}

/** The amounts that follow exactly from the journal. */
export type ExactAmounts = Omit<Amounts, "activeMs">;

/**
 * An account at one moment. Everything is exact but the working time: the journal has the wall-clock times of entries, the
 * stores measure by their steady time from commit to commit, leave out times in which a process was dead, and know of calls
 * that wait for a place among their children.
 */
export interface AccountAt extends AccountTerms {
  readonly used: ExactAmounts;
  readonly reserved: ReservedAmounts;
  /** The part of `used` whose real amount nobody knows. */
  readonly unconfirmed: ReservedAmounts;
  readonly time: AboutTime;
  /** When its turn ended, or its agent was shut down; null: it is open. */
  readonly closedAt: number | null;
}

/** Working time, from the times of entries: not exact. In milliseconds. */
export interface AboutTime {
  readonly isExact: false;
  /** Until `since`, or in all. */
  readonly activeMs: number;
  /** How many turns work under it. */
  readonly activeCount: number;
  /** Since when at least one works, in milliseconds since the epoch; null: none does. */
  readonly since: number | null;
}

/** The working time at a moment, in milliseconds: not exact. */
export function activeMsAbout({ activeMs, since }: AboutTime, at: number): number {
  return since === null ? activeMs : activeMs + Math.max(0, at - since);
}
