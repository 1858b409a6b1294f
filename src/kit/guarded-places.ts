import { listRule, oneOfRule, type OptionRule, ruleOf } from "../base/index.ts";
import type { GuardContext, GuardVerdict, PluginGuards } from "../hooks/index.ts";

/** The places where a ready-made guard checks texts. */
export const guardedPlaces = ["input", "toolCall", "toolResult", "output"] as const;
/** A place where a ready-made guard checks texts. */
export type GuardedPlace = (typeof guardedPlaces)[number];

/** A list that is not empty: a guard without a place would check nothing. */
export function someOfRule(values: readonly string[]): OptionRule {
  const isList = listRule(`a list of ${values.join(", ")}`, oneOfRule(...values));
  const isSome = ruleOf(`at least one of ${values.join(", ")}`, (value) => Array.isArray(value) && value.length > 0);
  return (value, where) => isSome(isList(value, where), where);
}

export const placesRule: OptionRule = someOfRule(guardedPlaces);

type Checked = GuardVerdict | Promise<GuardVerdict>;

/** The guards that check texts at these places; the arguments of a call are checked as JSON text. */
export function guardsAt(
  places: readonly GuardedPlace[],
  check: (text: string, run: GuardContext) => Checked,
): PluginGuards {
  const has = (place: GuardedPlace): boolean => places.includes(place);
  return {
    ...(has("input") ? { input: check } : {}),
    ...(has("toolCall")
      ? {
          toolCall: async ({ arguments: args }, run) => {
            const verdict = await check(JSON.stringify(args), run);
            if (verdict === undefined || "block" in verdict) return verdict;
            return rewrittenArguments(verdict.rewrite);
          },
        }
      : {}),
    ...(has("toolResult") ? { toolResult: ({ text }, run) => check(text, run) } : {}),
    ...(has("output") ? { output: check } : {}),
  };
}

function rewrittenArguments(json: string): GuardVerdict<object> {
  try {
    return { rewrite: JSON.parse(json) as object };
  } catch {
    return { block: "its arguments cannot be rewritten" };
  }
}
