import { deepFreeze } from "../base/index.ts";
import { type Price, priceSchema } from "../budget/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import { publicPrice } from "./public-prices.ts";

/**
 * Prices of your own, in dollars per million tokens, by model name as in `LanguageModel.name`, or by `provider/name` where
 * several providers serve a model of one name. They win over all that is known here.
 */
export type PriceTable = Readonly<Record<string, Price>>;

/** Who is asked for: a `LanguageModel` is one. */
export interface PricedModel {
  readonly name: string;
  readonly provider: string;
}

/**
 * What models cost. Own: the user's table, checked when it is given. Everything else is looked up in the public list, which is
 * loaded when a price is first searched for.
 * An unknown model has no price, which is never the same as costing nothing.
 */
export class PriceBook {
  readonly #own = new Map<string, Price>();
  readonly #searchesAlways: boolean;

  /** Throws `InvalidInputError` for a price that is no price. */
  constructor(table: PriceTable = {}, { searchesAlways = false } = {}) {
    if (typeof table !== "object" || table === null || Array.isArray(table)) {
      throw new InvalidInputError(
        `prices must be an object of prices by model name, for instance { "my-model": ${examplePrice} }`,
      );
    }
    for (const [model, price] of Object.entries(table)) this.#own.set(model, checkedPrice(`prices["${model}"]`, price));
    this.#searchesAlways = searchesAlways;
  }

  /**
   * The price of a model at `now` (milliseconds since the epoch), or null when nobody knows it. Where no limit on cost binds, the
   * public list is left alone, unless costs are to be shown.
   */
  priceOf(model: PricedModel, binds: boolean, now: number): Price | null | Promise<Price | null> {
    const own = this.#own.get(`${model.provider}/${model.name}`) ?? this.#own.get(model.name);
    if (own) return own;
    return binds || this.#searchesAlways ? publicPrice(model, now) : null;
  }
}

export const examplePrice = "{ inputPerMillion: 0.25, outputPerMillion: 2 }";

/** The price itself. Throws `InvalidInputError` that names `field` when it is none. */
export function checkedPrice(field: string, price: unknown): Price {
  const { success, data, error } = priceSchema.safeParse(price);
  if (success) return deepFreeze(data);
  const [issue] = error.issues;
  const path = issue?.path.join(".") ?? "";
  throw new InvalidInputError(
    `${field}${path === "" ? "" : `.${path}`} is not right (${issue?.message ?? "no price"}): a price is in dollars per million tokens, ` +
      `0 or at least 0.0001, for instance ${examplePrice}`,
  );
}
