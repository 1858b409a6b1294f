import { z } from "zod";
import { type DeepReadonly, describeValue } from "../base/index.ts";
import { InvariantError } from "../errors/index.ts";
import { type Account, type MetLimit, metLimit } from "./account.ts";
import { addAmounts, addModelUse, type ModelUse, noModelUse, settledUsageSchema } from "./amounts.ts";
import { reservationSchema } from "./reserve.ts";

/** The end of one reservation: the amounts that were really used take its place. */
export const settlementSchema = z.object({
  reservation: reservationSchema,
  tokens: z.number().int().nonnegative(),
  costMicros: z.number().int().nonnegative(),
  /** The parts of `tokens`, as the provider reported or as counted here. Null: unknown, or there are none. */
  usage: settledUsageSchema.nullable(),
  /** True when the real amount is unknown, so that the whole reservation counts as used. */
  unconfirmed: z.boolean(),
});
export type Settlement = DeepReadonly<z.infer<typeof settlementSchema>>;

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
  throw new InvariantError(`a call was to be settled at ${describeValue(amount)} ${what}; nothing was settled`);
}

/** Settles on every account of the chain. The provider's report counts, even above the reservation (F16). */
export function settle(chain: readonly Account[], settlement: Settlement): Account[] {
  assertSettlement(settlement);
  const { reservation, tokens, costMicros, unconfirmed } = settlement;
  const { model } = reservation;
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
    models: use ? { ...account.models, [model]: addModelUse(useOf(account, model), use) } : account.models,
  }));
}

function useOf({ models }: Account, model: string): ModelUse {
  return (Object.hasOwn(models, model) ? models[model] : undefined) ?? noModelUse;
}

/** The settled call as use of its model; undefined when it cost nothing. An unknown amount counts as it was reserved. */
export function modelUseOf({ reservation, tokens, costMicros, usage, unconfirmed }: Settlement): ModelUse | undefined {
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
    unpricedCalls: reservation.isUnpriced === true ? 1 : 0,
  };
}

/** Counts one tool call on the chain, or returns the account and limit that forbid it. */
export function countToolCall(
  chain: readonly Account[],
  agentId: string,
  now: number,
): { readonly granted: true; readonly accounts: Account[] } | ({ readonly granted: false } & MetLimit) {
  for (const account of chain) {
    const { limits, used } = account;
    const own = account.agentId === agentId;
    if (own && limits.maxToolCalls !== undefined && used.toolCalls >= limits.maxToolCalls) {
      return { granted: false, ...metLimit(account, "maxToolCalls", now) };
    }
    if (limits.maxTreeToolCalls !== undefined && used.treeToolCalls >= limits.maxTreeToolCalls) {
      return { granted: false, ...metLimit(account, "maxTreeToolCalls", now) };
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
 * Sets whether the holder of the first account works, and counts it on the whole chain: `maxSeconds` counts the time in
 * which at least one works. Returns the accounts that change; none if it was so already.
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
 * Leaves out the time in which the working process was dead: working time counts until its last sign of life, and again
 * from now on. An account that began to count after that sign stays as it is.
 */
export function passOverAbsence(account: Account, lastSign: number, now: number): Account {
  const { activeSince, used } = account;
  if (activeSince === null || activeSince > lastSign || lastSign >= now) return account;
  return { ...account, activeSince: now, used: { ...used, activeMs: used.activeMs + (lastSign - activeSince) } };
}
