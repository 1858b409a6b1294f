import { flagRule, nameRule, type OptionsSchema, optionsOf, optionsRule, wholeNumberRule } from "../../base/index.ts";
import type { DeletedCounts } from "../../state/index.ts";

/** Options of `runtime.deleteOwner()`. */
export interface DeleteOwnerOptions {
  /** Ends open turns first, and deletes the trees in any case. Default false: `AgentBusyError` while a turn is open. */
  readonly abort?: boolean | undefined;
  /** Who asked for the deletion; stored in the line that stays, so not the name of a person to be forgotten. Default `user`. */
  readonly by?: string | undefined;
  /** How long to wait for the end of aborted turns, in whole milliseconds. Default 10,000. */
  readonly timeoutMs?: number | undefined;
}

/** Options of `runtime.delete()`. */
export interface DeleteOptions extends DeleteOwnerOptions {
  /** Also deletes all forks of the tree, and their forks: they begin with a copy of it. Default false. */
  readonly forks?: boolean | undefined;
}

/** What was deleted. */
export interface DeletionReport {
  /** The deleted trees, in order: first the one that was named. */
  readonly trees: readonly DeletedTree[];
  /** Trees that were forked from a deleted one and are still stored: they contain a copy of its beginning. */
  readonly forks: readonly string[];
  /** The user's own stores that have neither `delete` nor `clear`, so that their copies stay: `messages`, `artifacts`, `state`. */
  readonly copiesLeft: readonly string[];
}

/** A deleted tree. */
export interface DeletedTree {
  /** Its root. */
  readonly agentId: string;
  /** When it was deleted, in milliseconds since the epoch. */
  readonly deletedAt: number;
  /** The head of its hash chain, which earlier heads of its audits lead to; `null` if it was unknown. */
  readonly head: string | null;
  /** Whether it had been deleted before this call. */
  readonly wasDeleted: boolean;
  /** What was deleted. */
  readonly counts: DeletedCounts;
  /**
   * Names of its definitions that this process does not know, and whose plugins or tools may keep data of their own, such as memories:
   * that data is still there. Empty if the tree had been deleted before.
   */
  readonly dataLeft: readonly string[];
}

/** What `runtime.deleteOwner()` has done. */
export interface OwnerDeletionReport extends DeletionReport {
  /** Trees that could not be deleted, with the errors. */
  readonly failed: readonly { readonly agentId: string; readonly error: unknown }[];
}

/** When trees and schedules are deleted that are not used any more. */
export interface RetentionOptions {
  /** Trees in which nothing has happened, and schedules that have ended, for this many milliseconds are deleted. At least 1,000. */
  readonly endedAfterMs: number;
  /** How often to look for them, in milliseconds. Default: a tenth of `endedAfterMs`, at least a second and at most ten minutes. */
  readonly everyMs?: number | undefined;
  /** Keeps the copies in stores of your own (`projections`). Default false. */
  readonly keepCopies?: boolean | undefined;
}

const ownerRules: OptionsSchema<DeleteOwnerOptions>["rules"] = {
  abort: flagRule,
  by: nameRule,
  timeoutMs: wholeNumberRule(0, 2 ** 31 - 1),
};

export function deleteOptionsOf(given: unknown): DeleteOptions {
  return optionsOf<DeleteOptions>(given, "runtime.delete()", { rules: { ...ownerRules, forks: flagRule } });
}

export function deleteOwnerOptionsOf(given: unknown): DeleteOwnerOptions {
  return optionsOf<DeleteOwnerOptions>(given, "runtime.deleteOwner()", { rules: ownerRules });
}

export const retentionRule = optionsRule<RetentionOptions>({
  rules: {
    endedAfterMs: wholeNumberRule(1_000),
    everyMs: wholeNumberRule(1, 2 ** 31 - 1),
    keepCopies: flagRule,
  },
  needed: ["endedAfterMs"],
  instead: { ms: "endedAfterMs", maxAgeMs: "endedAfterMs", ttl: "endedAfterMs" },
});
