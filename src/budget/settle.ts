import { z } from "zod";
import type { Account } from "./account.ts";
import type { LimitName, Limits } from "./limits.ts";
import { reservationSchema } from "./reserve.ts";

/** The end of one reservation: what was really used takes its place. */
export const settlementSchema = z.object({
  reservation: reservationSchema,
  tokens: z.number().int().nonnegative(),
  costMicros: z.number().int().nonnegative(),
  /** True when nobody knows the real amount, so the whole reservation counts as used. */
  unconfirmed: z.boolean(),
});
export type Settlement = z.infer<typeof settlementSchema>;

export interface BudgetWarning {
  readonly accountId: string;
  readonly limit: LimitName;
  readonly used: number;
  readonly max: number;
}

/** The share of a limit at which its warning is given. */
export const WARNING_SHARE = 0.8;

/** Settles on every account of the chain; what the provider reports counts, also when it is more than was reserved (F16). */
export function settle(chain: readonly Account[], settlement: Settlement): Account[] {
  const { reservation, tokens, costMicros, unconfirmed } = settlement;
  return chain.map((account) => ({
    ...account,
    used: {
      ...account.used,
      tokens: account.used.tokens + tokens,
      costMicros: account.used.costMicros + costMicros,
    },
    reserved: {
      tokens: Math.max(0, account.reserved.tokens - reservation.tokens),
      costMicros: Math.max(0, account.reserved.costMicros - reservation.costMicros),
    },
    unconfirmed: unconfirmed
      ? {
          tokens: account.unconfirmed.tokens + tokens,
          costMicros: account.unconfirmed.costMicros + costMicros,
        }
      : account.unconfirmed,
  }));
}

/** Counts one tool call on the chain, or names the account and limit that forbid it. */
export function countToolCall(
  chain: readonly Account[],
  agentId: string,
):
  | { readonly granted: true; readonly accounts: Account[] }
  | { readonly granted: false; readonly accountId: string; readonly limit: LimitName } {
  for (const account of chain) {
    const { limits, used } = account;
    const own = account.agentId === agentId;
    if (own && limits.maxToolCalls !== undefined && used.toolCalls >= limits.maxToolCalls) {
      return { granted: false, accountId: account.id, limit: "maxToolCalls" };
    }
    if (limits.maxTreeToolCalls !== undefined && used.treeToolCalls >= limits.maxTreeToolCalls) {
      return { granted: false, accountId: account.id, limit: "maxTreeToolCalls" };
    }
  }
  return {
    granted: true,
    accounts: chain.map((account) => ({
      ...account,
      used: {
        ...account.used,
        toolCalls: account.used.toolCalls + (account.agentId === agentId ? 1 : 0),
        treeToolCalls: account.used.treeToolCalls + 1,
      },
    })),
  };
}

/**
 * Notes whether the first account's own holder works, and counts it on the whole chain; the time between the first worker
 * and the last is what `maxSeconds` counts. Gives the accounts that change: none when it is as told already.
 */
export function countActivity(chain: readonly Account[], isActive: boolean, at: number): Account[] {
  const [own, ...above] = chain;
  if (!own || own.isActive === isActive) return [];
  const delta = isActive ? 1 : -1;
  return [{ ...own, isActive }, ...above].map((account) => {
    const activeCount = Math.max(0, account.activeCount + delta);
    if (account.activeSince === null) return { ...account, activeCount, activeSince: activeCount > 0 ? at : null };
    if (activeCount > 0) return { ...account, activeCount };
    const activeMs = account.used.activeMs + Math.max(0, at - account.activeSince);
    return { ...account, activeCount, activeSince: null, used: { ...account.used, activeMs } };
  });
}

/**
 * Leaves out the time in which nobody worked because the process that did was gone: what counts ends at its last sign of
 * life, and goes on now. An account that began to count after that sign is as it was.
 */
export function passOverAbsence(account: Account, lastSign: number, now: number): Account {
  const { activeSince, used } = account;
  if (activeSince === null || activeSince > lastSign || lastSign >= now) return account;
  return { ...account, activeSince: now, used: { ...used, activeMs: used.activeMs + (lastSign - activeSince) } };
}

/** When `maxSeconds` of this account runs out if its work goes on; undefined when it is idle or has no such limit. */
export function activeUntil(account: Account): number | undefined {
  if (account.activeSince === null || account.limits.maxActiveMs === undefined) return undefined;
  return account.activeSince + Math.max(0, account.limits.maxActiveMs - account.used.activeMs);
}

const watched: readonly (readonly [LimitName, keyof Account["used"]])[] = [
  ["maxSteps", "steps"],
  ["maxTreeSteps", "treeSteps"],
  ["maxTokens", "tokens"],
  ["maxCostMicros", "costMicros"],
  ["maxActiveMs", "activeMs"],
];

/** Limits of this account that passed 80 % and were not warned of yet; the returned account remembers them. */
export function newWarnings(account: Account): { readonly account: Account; readonly warnings: BudgetWarning[] } {
  if (!hasWatchedLimit(account.limits)) return { account, warnings: [] };
  const warnings: BudgetWarning[] = [];
  for (const [limit, amount] of watched) {
    const max = account.limits[limit];
    if (max === undefined || max === 0 || account.warned.includes(limit)) continue;
    const used = account.used[amount];
    if (used >= max * WARNING_SHARE) warnings.push({ accountId: account.id, limit, used, max });
  }
  if (warnings.length === 0) return { account, warnings };
  return { account: { ...account, warned: [...account.warned, ...warnings.map((one) => one.limit)] }, warnings };
}

function hasWatchedLimit(limits: Limits): boolean {
  return watched.some(([limit]) => limits[limit] !== undefined);
}
