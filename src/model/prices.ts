import { type Price, priceSchema } from "../budget/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import type { Usage } from "../state/index.ts";

/** Prices in dollars per million tokens, by model name as in `LanguageModel.name`. */
export type PriceTable = Readonly<Record<string, Price>>;

/**
 * The price of a model, by its exact name. An unknown model has no price, which is never the same as costing nothing;
 * a dated name is not taken for its family, because their prices differ. Throws `InvalidInputError` for a price that is no price.
 */
export function priceOf(model: string, table: PriceTable): Price | undefined {
  if (!Object.hasOwn(table, model)) return undefined;
  const { success, data, error } = priceSchema.safeParse(table[model]);
  if (success) return data;
  const field = error.issues[0]?.path.join(".") ?? "";
  throw new InvalidInputError(
    `The price of "${model}" is not right${field === "" ? "" : ` in ${field}`}: it must be dollars per million tokens, 0 or more, ` +
      "for instance { inputPerMillion: 0.25, outputPerMillion: 2 }.",
  );
}

/**
 * What a call costs, in whole micro-dollars (millionths of a dollar), rounded up once. Cached input without a price of
 * its own costs what all input does. A price finer than six decimals is rounded to them.
 */
export function costOf(usage: Usage, price: Price): number {
  const cached = Math.min(usage.cachedInputTokens ?? 0, usage.inputTokens);
  const picodollars =
    charge(usage.inputTokens - cached, price.inputPerMillion) +
    charge(cached, price.cachedInputPerMillion ?? price.inputPerMillion) +
    charge(usage.outputTokens, price.outputPerMillion);
  return Number((picodollars + 999_999n) / 1_000_000n);
}

/** Picodollars, in big integers: 0.07 dollars times 100 tokens must be 7 micro-dollars, not 8. */
function charge(tokens: number, dollarsPerMillion: number): bigint {
  return BigInt(tokens) * BigInt(Math.round(dollarsPerMillion * 1_000_000));
}
