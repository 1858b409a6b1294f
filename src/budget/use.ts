import { describeValue } from "../base/index.ts";
import { InvariantError } from "../errors/index.ts";
import { activeMsAt, amountOfLimit, type MetLimit, metLimit, type Moment } from "./account.ts";
import { type LimitName, limitNames } from "./limit-names.ts";
import { addAmounts, addModelUse, useOfModel } from "./model-use.ts";
import type { Account, ModelUse, Settlement } from "./schemas.ts";

/**
 * Negative amounts would be refunds, with which a team could spend more than its budget.
 * @throws InvariantError for amounts that are not whole numbers from 0.
 */
export function assertSettlement({ tokens, costMicros, usage }: Settlement): void {
  assertAmount("tokens", tokens);
  assertAmount("costMicros", costMicros);
  if (usage === null) return;
  assertAmount("inputTokens", usage.inputTokens);
  assertAmount("outputTokens", usage.outputTokens);
}

function assertAmount(what: string, amount: number): void {
  if (Number.isSafeInteger(amount) && amount >= 0) return;
  throw new InvariantError(`cannot settle a call at ${describeValue(amount)} ${what}; nothing was settled`);
}

/** Settles on every account of the chain. The provider's report counts, even if it exceeds the reservation (F16). */
export function settle(chain: readonly Account[], settlement: Settlement): Account[] {
  assertSettlement(settlement);
  const { reservation, tokens, costMicros, unconfirmed } = settlement;
  const model = billedModel(settlement);
  const use = modelUseOf(settlement);
  return chain.map((account) => ({
    ...account,
    used: {
      ...account.used,
      tokens: addAmounts(account.used.tokens, tokens),
      costMicros: addAmounts(account.used.costMicros, costMicros),
    },
    reserved: {
      tokens: Math.max(0, account.reserved.tokens - reservation.tokens),
      costMicros: Math.max(0, account.reserved.costMicros - reservation.costMicros),
    },
    unconfirmed: unconfirmed
      ? {
          tokens: addAmounts(account.unconfirmed.tokens, tokens),
          costMicros: addAmounts(account.unconfirmed.costMicros, costMicros),
        }
      : account.unconfirmed,
    models: use ? { ...account.models, [model]: addModelUse(useOfModel(account.models, model), use) } : account.models,
  }));
}

/** The name under which a settled call is counted. */
export function billedModel({ model, reservation }: Settlement): string {
  return model ?? reservation.model;
}

/** The use of a model by the settled call; `undefined` if it used nothing. If the amount is unknown, the reservation counts. */
export function modelUseOf(settlement: Settlement): ModelUse | undefined {
  const { reservation, tokens, costMicros, usage, unconfirmed, model } = settlement;
  if (usage === null && tokens === 0 && costMicros === 0 && !unconfirmed) return undefined;
  const outputTokens = usage?.outputTokens ?? Math.min(tokens, reservation.outputTokens);
  return {
    calls: 1,
    inputTokens: tokens - outputTokens,
    outputTokens,
    cachedInputTokens: usage?.cachedInputTokens ?? 0,
    cacheWriteTokens: usage?.cacheWriteTokens ?? 0,
    reasoningTokens: usage?.reasoningTokens ?? 0,
    costMicros,
    estimatedCalls: usage?.estimated === true ? 1 : 0,
    unconfirmedCalls: unconfirmed ? 1 : 0,
    // Another model is billed only if its price is known.
    unpricedCalls: reservation.isUnpriced === true && model === undefined ? 1 : 0,
  };
}

/** Counts one tool call on the chain, or returns the account and limit that forbid it. */
export function countToolCall(
  chain: readonly Account[],
  agentId: string,
  moment: Moment,
):
  | { readonly granted: true; readonly accounts: Account[] }
  | ({ readonly granted: false; readonly needed: 1 } & MetLimit) {
  for (const account of chain) {
    const { limits, used } = account;
    const own = account.agentId === agentId;
    if (own && limits.maxToolCalls !== undefined && used.toolCalls >= limits.maxToolCalls) {
      return { granted: false, needed: 1, ...metLimit(account, "maxToolCalls", moment) };
    }
    if (limits.maxTreeToolCalls !== undefined && used.treeToolCalls >= limits.maxTreeToolCalls) {
      return { granted: false, needed: 1, ...metLimit(account, "maxTreeToolCalls", moment) };
    }
  }
  return { granted: true, accounts: chain.map((account) => withToolCall(account, agentId)) };
}

/** The account after one more tool call of that agent. */
export function withToolCall(account: Account, agentId: string): Account {
  const { toolCalls, treeToolCalls } = account.used;
  const own = account.agentId === agentId ? 1 : 0;
  return { ...account, used: { ...account.used, toolCalls: toolCalls + own, treeToolCalls: treeToolCalls + 1 } };
}

/**
 * Sets whether the holder of the first account is working, and counts it on the complete chain: `maxSeconds` counts the time in which at
 * least one holder works. Returns the changed accounts; none if nothing changed.
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
 * Excludes the time in which the working process was dead: working time counts until its last sign of life, and again from now on. An
 * account that started counting after that sign does not change.
 */
export function passOverAbsence(account: Account, lastSign: number, now: number): Account {
  const { activeSince, used } = account;
  if (activeSince === null || activeSince > lastSign || lastSign >= now) return account;
  return { ...account, activeSince: now, used: { ...used, activeMs: used.activeMs + (lastSign - activeSince) } };
}

/** 80 % of a limit are used, or of the time until a deadline. */
export type BudgetWarning = MetLimit;

/** The fraction of a limit at which its warning is given. */
export const WARNING_SHARE = 0.8;

/** The limits that are reached by the passing of time alone. */
export type TimeLimit = "maxActiveMs" | "deadlineAt";

/** The next alarm of a time limit, in steady time for `maxActiveMs` and in wall-clock time for a deadline. */
export interface LimitAlarm {
  readonly dueAt: number;
  /** When the limit itself is reached; later than `dueAt` if the warning comes first. */
  readonly limitAt: number;
}

/** `undefined` if the account has no such limit, or is idle. */
export function alarmOf(account: Account, limit: TimeLimit): LimitAlarm | undefined {
  const limitAt = limit === "deadlineAt" ? account.limits.deadlineAt : activeUntil(account);
  if (limitAt === undefined) return undefined;
  const warnsAt = account.warned.includes(limit) ? undefined : warningAt(account, limit);
  return { dueAt: warnsAt === undefined ? limitAt : Math.min(warnsAt, limitAt), limitAt };
}

/** When `maxSeconds` is reached if the work continues; `undefined` if the account is idle or has no such limit. */
export function activeUntil({ activeSince, limits, used }: Account): number | undefined {
  if (activeSince === null || limits.maxActiveMs === undefined) return undefined;
  return activeSince + Math.max(0, limits.maxActiveMs - used.activeMs);
}

function warningAt({ limits, openedAt, activeSince, used }: Account, limit: TimeLimit): number | undefined {
  const { deadlineAt, maxActiveMs } = limits;
  if (limit === "maxActiveMs") {
    if (!maxActiveMs || activeSince === null) return undefined;
    return activeSince + Math.max(0, Math.ceil(maxActiveMs * WARNING_SHARE) - used.activeMs);
  }
  if (deadlineAt === undefined || deadlineAt <= openedAt) return undefined;
  return openedAt + Math.ceil((deadlineAt - openedAt) * WARNING_SHARE);
}

/**
 * The limits of this account that have passed 80 % without a warning so far; the returned account records them. For a deadline, 80 % of
 * the time since the account was opened; there is no warning after it has passed.
 */
export function newWarnings(
  account: Account,
  moment: Moment,
): { readonly account: Account; readonly warnings: readonly BudgetWarning[] } {
  let reached: readonly LimitName[] = noNames;
  for (const limit of limitNames) {
    const max = account.limits[limit];
    if (max && isNear(account, limit, max, moment) && !account.warned.includes(limit)) reached = [...reached, limit];
  }
  if (reached.length === 0) return { account, warnings: none };
  const warnings = reached.map((limit) => metLimit(account, limit, moment));
  return { account: { ...account, warned: [...account.warned, ...reached] }, warnings };
}

const none: readonly BudgetWarning[] = Object.freeze([]);
const noNames: readonly LimitName[] = Object.freeze([]);

function isNear(account: Account, limit: LimitName, max: number, { now, steady }: Moment): boolean {
  if (limit === "deadlineAt") {
    const at = warningAt(account, limit);
    return at !== undefined && now >= at && now < max;
  }
  const amount = limit === "maxActiveMs" ? activeMsAt(account, steady) : account.used[amountOfLimit[limit]];
  return amount >= max * WARNING_SHARE;
}
