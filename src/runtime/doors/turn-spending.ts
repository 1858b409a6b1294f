import {
  type Account,
  addModelUse,
  type ModelUse,
  modelUseOf,
  noModelUse,
  totalUse,
  type UseByModel,
} from "../../budget/index.ts";
import type { Entry } from "../../state/index.ts";

/** What model calls have used. */
export interface Spending {
  /** Calls that may have cost something: retries and those of hooks and tools among them. */
  readonly calls: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** Part of `inputTokens`. */
  readonly cachedInputTokens: number;
  /** Part of `inputTokens` that the provider wrote to its cache; not among the cached. */
  readonly cacheWriteTokens: number;
  /** Part of `outputTokens`. */
  readonly reasoningTokens: number;
  /** Dollars; null when the price of a call is not known. */
  readonly cost: number | null;
  /** Calls whose tokens were counted here, because the provider sent none. */
  readonly estimatedCalls: number;
  /** Calls that count at all they had reserved, because nobody knows what became of them. */
  readonly unconfirmedCalls: number;
}

/** What one turn has spent. */
export interface TurnSpending {
  /** Of the agent's own calls. */
  readonly own: Spending;
  /** With those of all subagents below it, up to the turn's end. */
  readonly tree: Spending;
  /** The same by the name of the model that was asked for. */
  readonly byModel: Readonly<Record<string, Spending>>;
}

/** The spending of a turn: its own part from its entries, the whole from its account. */
export function turnSpending(entries: readonly Entry[], account: Account | undefined): TurnSpending {
  const own = ownUse(entries);
  const tree = account?.models ?? own;
  return {
    own: spendingOf(totalUse(own)),
    tree: spendingOf(totalUse(tree)),
    byModel: Object.fromEntries(Object.entries(tree).map(([model, use]) => [model, spendingOf(use)])),
  };
}

/** A model's use as it is shown. */
export function spendingOf({ costMicros, unpricedCalls, ...use }: ModelUse): Spending {
  return { ...use, cost: unpricedCalls > 0 ? null : costMicros / 1_000_000 };
}

/** What settled calls of these entries have used. */
export function ownUse(entries: readonly Entry[]): UseByModel {
  const models = new Map<string, ModelUse>();
  for (const entry of entries) {
    const settlement = "settlement" in entry ? entry.settlement : null;
    const use = settlement && modelUseOf(settlement);
    if (!settlement || !use) continue;
    const { model } = settlement.reservation;
    models.set(model, addModelUse(models.get(model) ?? noModelUse, use));
  }
  return Object.fromEntries(models);
}
