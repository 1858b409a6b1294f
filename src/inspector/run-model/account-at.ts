import { type Account, outerPartsOf } from "../../budget/index.ts";

export type { Account };

/** The fields with which an account was opened. */
export type AccountTerms = Pick<Account, "id" | "agentId" | "turnId" | "parentId" | "limits" | "openedAt">;

/** A stored account. Its limits may have changed since it was opened. */
export type StoredTerms = AccountTerms & Pick<Account, "firstLimits">;

export function termsOf({ id, agentId, turnId, parentId, limits, firstLimits, openedAt }: StoredTerms): AccountTerms {
  return { id, agentId, turnId, parentId, limits: firstLimits ?? limits, openedAt };
}

/**
 * An account at one moment. Everything is exact except the working time, `activeSince`, and the time limit that is left to
 * an account of background children. The journal has the wall-clock times of entries; the stores measure steady time from
 * commit to commit, leave out times in which a process was dead, and also count calls that wait for a free child slot.
 */
export interface AccountAt extends Account {
  /** When the account's turn ended or its agent was shut down; `null` while the account is open. */
  readonly closedAt: number | null;
}

/** An account above the run, in words: `owner ada, per day`. */
export function aboveName(accountId: string): string {
  const { name = null, window = "" } = outerPartsOf(accountId) ?? {};
  const span = window === "total" ? "in total" : `per ${window.slice(3).toLowerCase()}`;
  return `${name === null ? "the tenant" : `owner ${name}`}, ${span}`;
}

/** What an account pays for, in words. */
export function scopeOf({ id, turnId }: Pick<AccountAt, "id" | "turnId">): string {
  const number = id.slice(id.lastIndexOf("#") + 1);
  if (id.startsWith("background:")) return `background of turn ${number}`;
  return turnId === null ? "whole life" : `turn ${number}`;
}
