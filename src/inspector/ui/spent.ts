import type { RunMoment } from "../run-model/run-moments.ts";
import { type Cost, costOf, costSum } from "./format.ts";

/** What a run has spent until a moment: the sum of the top accounts, which count all calls of all agents. */
export function spentUntil({ accounts: { accounts } }: RunMoment): { readonly tokens: number; readonly cost: Cost } {
  const ids = new Set(accounts.map(({ id }) => id));
  const tops = accounts.filter(({ parentId }) => parentId === null || !ids.has(parentId));
  return { tokens: tops.reduce((sum, { used }) => sum + used.tokens, 0), cost: costSum(tops.map(costOf)) };
}
