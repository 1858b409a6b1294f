import type { ModelPrice } from "@pydantic/genai-prices";
import { type Price, priceSchema, type PriceTier } from "../budget/index.ts";
import { deepFreeze } from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";

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

/** Served by this package itself: nobody publishes what they cost. */
const unlisted = new Set(["offline", "scripted"]);

/** Prices that hold at all times, by provider and model; null for what the list does not have. */
const lasting = new Map<string, Price | null>();

/**
 * The price that `@pydantic/genai-prices` has for a model of exactly this provider, at `now`: its names are `openai`, `anthropic`,
 * `google`, `azure`, `openrouter`, `groq`, … Null when it has none, or none by the token. The list comes with the package,
 * nothing is fetched; it is loaded on first use (20 MB).
 */
export function publicPrice(
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
    // The list takes any name with "openai" in it for OpenAI; a server that only speaks its wire has prices of its own.
    const found = provider?.id === providerId ? calcPrice({}, name, { provider, timestamp: new Date(now) }) : null;
    const price = found ? priceFrom(found.model_price) : null;
    if (!found || !Array.isArray(found.model.prices)) lasting.set(key, price);
    return price;
  } catch {
    // A list that cannot be loaded or read is a list without this model: under a limit on cost the call is refused.
    return null;
  }
}

/** The prices of the list that concern texts and images in, texts out. */
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
  // Reasoning is output: where it is dearer than text, all output is taken for it.
  const outputPerMillion = at("output_mtok", "output_reasoning_mtok");
  if (inputPerMillion === undefined || outputPerMillion === undefined) return undefined;
  const cached = at("cache_read_mtok");
  const written = at("cache_write_mtok");
  return {
    inputPerMillion,
    outputPerMillion,
    ...(cached === undefined ? {} : { cachedInputPerMillion: cached }),
    ...(written === undefined ? {} : { cacheWritePerMillion: written }),
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
