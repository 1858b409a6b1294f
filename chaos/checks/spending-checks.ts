import type { Account, Price } from "../../src/index.ts";
import type { Entry } from "../../src/state/index.ts";
import type { TreeEvidence } from "../../src/testing/simulation/evidence.ts";
import { type BilledCallLine, sidePrefix } from "../model/script.ts";

export interface Spent {
  readonly tokens: number;
  readonly costMicros: number;
}

const nothing: Spent = { tokens: 0, costMicros: 0 };

/**
 * The provider's bill for one tree, from the provider's log. `names`: prefixes of the tasks of its agents, such as the
 * root's id. `price` in whole micro-dollars per token.
 */
export function billedBelow(names: readonly string[], log: readonly BilledCallLine[], price: Price): Spent {
  const isOurs = (task: string): boolean => {
    const place = task.startsWith(sidePrefix) ? task.slice(sidePrefix.length) : task;
    return names.some((name) => place.startsWith(name) && /^([#~/]|$)/.test(place.slice(name.length)));
  };
  return log
    .filter(({ task }) => isOurs(task))
    .map(({ inputTokens, outputTokens }) => ({
      tokens: inputTokens + outputTokens,
      costMicros: inputTokens * price.inputPerMillion + outputTokens * price.outputPerMillion,
    }))
    .reduce(plus, nothing);
}

/**
 * Compares the accounts of a finished tree with its journal and the provider's bill (F15): each reservation is settled
 * once, nothing billed is missing, amounts beyond the bill are marked `unconfirmed`, and no limit is exceeded.
 */
export function spendingViolations({ rootAgentId, agents, accounts }: TreeEvidence, billed: Spent): string[] {
  const entries = agents.flatMap((agent) => agent.entries);
  const roots = accounts.filter(({ parentId }) => parentId === null);
  const used = roots.map((account) => account.used).reduce(plus, nothing);
  const unconfirmed = roots.map((account) => account.unconfirmed).reduce(plus, nothing);
  const settled = entries.flatMap(settlementOf);
  const journalled = settled.reduce(plus, nothing);
  const journalledUnconfirmed = settled.filter((one) => one.unconfirmed).reduce(plus, nothing);
  const grants = entries.filter(({ type }) => type === "model.requested" || type === "generate.requested").length;
  const faults = [
    ...(settled.length === grants ? [] : [`${grants} calls were granted, ${settled.length} settled`]),
    ...differences("the journal's settlements", journalled, "the accounts", used),
    ...differences("what the journal does not know", journalledUnconfirmed, "the accounts' unconfirmed", unconfirmed),
    ...accounts.flatMap(overspent),
  ];
  for (const amount of ["tokens", "costMicros"] as const) {
    if (used[amount] < billed[amount]) faults.push(`${used[amount]} ${amount} used, ${billed[amount]} billed`);
    const most = billed[amount] + unconfirmed[amount];
    if (used[amount] > most) faults.push(`${used[amount]} ${amount} used, ${most} billed or unconfirmed`);
  }
  return faults.map((text) => `${rootAgentId}: ${text}`);
}

function settlementOf(entry: Entry) {
  return "settlement" in entry && entry.settlement ? [entry.settlement] : [];
}

function overspent({ id, used, limits }: Account): string[] {
  const faults: string[] = [];
  if (used.tokens > (limits.maxTokens ?? Infinity)) faults.push(`account ${id} used ${used.tokens} tokens`);
  if (used.costMicros > (limits.maxCostMicros ?? Infinity)) faults.push(`account ${id} used ${used.costMicros} micros`);
  return faults;
}

function differences(what: string, one: Spent, where: string, other: Spent): string[] {
  if (one.tokens === other.tokens && one.costMicros === other.costMicros) return [];
  return [`${what}: ${one.tokens} tokens, ${one.costMicros} micros; ${where}: ${other.tokens}, ${other.costMicros}`];
}

function plus(one: Spent, other: Spent): Spent {
  return { tokens: one.tokens + other.tokens, costMicros: one.costMicros + other.costMicros };
}
