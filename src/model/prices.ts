import type { ModelPrice } from "@pydantic/genai-prices";
import { type Price, priceSchema, type PriceTier } from "../budget/index.ts";
import { deepFreeze } from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";

/**
 * Your prices, in dollars per million tokens, by model name as in `LanguageModel.name`, or by `provider/name` if several providers serve
 * a model of the same name. They take precedence over all other prices.
 */
export type PriceTable = Readonly<Record<string, Price>>;

/** The fields by which a price is looked up; a `LanguageModel` has them. */
export interface PricedModel {
  readonly name: string;
  readonly provider: string;
}

/**
 * The prices of models. Owns the user's table and checks it on construction. Other prices come from a public list, which is loaded on the
 * first lookup.
 * An unknown model has no price, which is different from a price of 0.
 */
export class PriceBook {
  readonly #own = new Map<string, Price>();
  readonly #searchesAlways: boolean;

  /** Throws `InvalidInputError` for an invalid price. */
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
   * The price of a model at `now` (milliseconds since the epoch), or null if it is unknown. If no limit on cost applies, the public list
   * is not read, unless costs are to be shown.
   */
  priceOf(model: PricedModel, binds: boolean, now: number): Price | null | Promise<Price | null> {
    const own = this.#own.get(`${model.provider}/${model.name}`) ?? this.#own.get(model.name);
    if (own) return own;
    return binds || this.#searchesAlways ? publicPrice(model, now) : null;
  }
}

export const examplePrice = "{ inputPerMillion: 0.25, outputPerMillion: 2 }";

/** Returns the price. Throws `InvalidInputError` that names `field` if it is invalid. */
export function checkedPrice(field: string, price: unknown): Price {
  const { success, data, error } = priceSchema.safeParse(price);
  if (success) return deepFreeze(data);
  const [issue] = error.issues;
  const path = issue?.path.join(".") ?? "";
  throw new InvalidInputError(
    `${field}${path === "" ? "" : `.${path}`} is not valid (${issue?.message ?? "no price"}): expected dollars per million tokens, ` +
      `0 or at least 0.0001, for instance ${examplePrice}`,
  );
}

/** Providers of this package; the public list does not contain them. */
const unlisted = new Set(["offline", "scripted"]);

/** Prices without a time limit, by provider and model; null for models that are not in the list. */
const lasting = new Map<string, Price | null>();

/**
 * The price in `@pydantic/genai-prices` for a model of exactly this provider, at `now`: its provider names are `openai`, `anthropic`,
 * `google`, `azure`, `openrouter`, `groq`, … Null if the model has no price, or no price per token. The list is part of the package, so
 * nothing is fetched; it is loaded on first use (20 MB).
 */
function publicPrice(
  { provider, name }: { readonly provider: string; readonly name: string },
  now: number,
): Price | null | Promise<Price | null> {
  if (unlisted.has(provider)) return null;
  return lasting.get(`${provider}/${name}`) ?? search(provider, name, now);
}

async function search(providerId: string, name: string, now: number): Promise<Price | null> {
  const key = `${providerId}/${name}`;
  const known = lasting.get(key);
  if (known !== undefined) return known;
  try {
    const { calcPrice, findProvider } = await import("@pydantic/genai-prices");
    const provider = findProvider({ providerId });
    // The list matches any provider name that contains "openai", but a compatible server has its own prices.
    const found = provider?.id === providerId ? calcPrice({}, name, { provider, timestamp: new Date(now) }) : null;
    const price = found ? priceFrom(found.model_price) : null;
    if (!found || !Array.isArray(found.model.prices)) lasting.set(key, price);
    return price;
  } catch {
    // If loading the list fails, the price counts as unknown: under a limit on cost the call is refused.
    return null;
  }
}

/** The prices for input (texts and images) and output text. */
function priceFrom(listed: ModelPrice): Price | null {
  const base = ratesAt(listed, 0);
  if (!base) return null;
  const starts = new Set(Object.values(listed).flatMap((value) => tiersOf(value).map(({ start }) => start)));
  const tiers = [...starts].flatMap((aboveInputTokens): PriceTier[] => {
    const rates = ratesAt(listed, aboveInputTokens + 1);
    return rates ? [{ aboveInputTokens, ...rates }] : [];
  });
  const perThousand = rateAt(listed["requests_kcount"], 0);
  const price: Price = {
    ...base,
    ...(perThousand === undefined ? {} : { perCall: perThousand / 1_000 }),
    ...(tiers.length === 0 ? {} : { tiers }),
  };
  return priceSchema.safeParse(price).data ?? null;
}

type Rates = Omit<PriceTier, "aboveInputTokens">;

function ratesAt(listed: ModelPrice, inputTokens: number): Rates | undefined {
  const at = (...names: readonly string[]): number | undefined =>
    dearest(names.map((name) => rateAt(listed[name], inputTokens)));
  const inputPerMillion = at("input_mtok");
  // Reasoning is billed as output: if its price is higher than that of text, it applies to all output.
  const outputPerMillion = at("output_mtok", "output_reasoning_mtok");
  if (inputPerMillion === undefined || outputPerMillion === undefined) return undefined;
  const cached = at("cache_read_mtok");
  const written = at("cache_write_mtok");
  const writtenLong = at("cache_write_1h_mtok");
  return {
    inputPerMillion,
    outputPerMillion,
    ...(cached === undefined ? {} : { cachedInputPerMillion: cached }),
    ...(written === undefined ? {} : { cacheWritePerMillion: written }),
    ...(writtenLong === undefined ? {} : { longCacheWritePerMillion: writtenLong }),
  };
}

function dearest(rates: readonly (number | undefined)[]): number | undefined {
  const known = rates.filter((rate) => rate !== undefined);
  return known.length === 0 ? undefined : Math.max(...known);
}

type Listed = ModelPrice[string];

function rateAt(value: Listed, inputTokens: number): number | undefined {
  if (value === undefined || typeof value === "number") return value;
  let rate = value.base;
  let reached = -1;
  for (const { start, price } of value.tiers) {
    if (inputTokens <= start || start <= reached) continue;
    rate = price;
    reached = start;
  }
  return rate;
}

function tiersOf(value: Listed): readonly { readonly start: number }[] {
  return typeof value === "object" ? value.tiers : [];
}
