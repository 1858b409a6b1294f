import { InvalidInputError } from "../../errors/index.ts";

/** One page of a list. */
export interface Page<Item> {
  /** The entries of this page, in the order of the list. */
  readonly items: readonly Item[];
  /** Value of `after` for the next page; `null` on the last page. */
  readonly next: string | null;
}

export interface PageOptions {
  /** 1 to 100. Default 50. */
  readonly limit?: number | undefined;
  /** `next` of the previous page. Default: the first page. */
  readonly after?: string | undefined;
}

const DEFAULT_LIMIT = 50;
const MOST_ITEMS = 100;

/** The number of items of a page. Throws `InvalidInputError`. */
export function limitOf({ limit = DEFAULT_LIMIT }: PageOptions): number {
  if (Number.isSafeInteger(limit) && limit >= 1 && limit <= MOST_ITEMS) return limit;
  throw new InvalidInputError(`limit must be a whole number from 1 to ${MOST_ITEMS}`);
}

/** Makes a page of a list that was read with one extra item. */
export function pageOf<Item>(found: readonly Item[], limit: number, cursorOf: (item: Item) => string): Page<Item> {
  const items = found.slice(0, limit);
  const last = found.length > limit ? items.at(-1) : undefined;
  return { items, next: last === undefined ? null : cursorOf(last) };
}
