import type { Account } from "../../budget/index.ts";

export type { Account };

/** What an account was opened with. */
export type AccountTerms = Pick<Account, "id" | "agentId" | "turnId" | "parentId" | "limits" | "openedAt">;

/** A stored account, of which the terms are wanted. Its limits may have changed since it was opened. */
export type StoredTerms = AccountTerms & Pick<Account, "firstLimits">;

export function termsOf({ id, agentId, turnId, parentId, limits, firstLimits, openedAt }: StoredTerms): AccountTerms {
  return { id, agentId, turnId, parentId, limits: firstLimits ?? limits, openedAt };
}

/**
 * An account at one moment. Everything is exact but the working time, with `activeSince` and the limit that it leaves to an
 * account of background children: the journal has the wall-clock times of entries, the stores measure by their steady time
 * from commit to commit, leave out times in which a process was dead, and know of calls that wait for a place among their
 * children.
 */
export interface AccountAt extends Account {
  /** When its turn ended, or its agent was shut down; `null` while the account is open. */
  readonly closedAt: number | null;
}

/** What an account pays for. */
export function scopeOf({ id, turnId }: Pick<AccountAt, "id" | "turnId">): string {
  const number = id.slice(id.lastIndexOf("#") + 1);
  if (id.startsWith("background:")) return `background of turn ${number}`;
  return turnId === null ? "whole life" : `turn ${number}`;
}
