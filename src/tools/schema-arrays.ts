import { textOf } from "./schema-values.ts";
import type { Checking, Visit } from "./schema-visit.ts";

type ArrayVisit = Visit & { readonly value: readonly unknown[] };

/** Keywords of lists, in all their spellings. */
export function checkArray(check: Checking, visit: ArrayVisit): boolean {
  const { schema, value, place, seen } = visit;
  const { minItems, maxItems, uniqueItems, unevaluatedItems } = schema;
  check.limit.spend(value.length);
  let fits = true;
  if (typeof minItems === "number" && value.length < minItems) {
    fits = check.fail(place, `must have at least ${minItems} items`);
  }
  if (typeof maxItems === "number" && value.length > maxItems) {
    fits = check.fail(place, `must have at most ${maxItems} items`);
  }
  if (uniqueItems === true && !areUnique(check, value)) {
    fits = check.fail(place, "must not have the same item twice");
  }
  fits = checkItems(check, visit) && fits;
  fits = checkContains(check, visit) && fits;
  if (unevaluatedItems === undefined) return fits;
  for (const [index, item] of value.entries()) {
    if (!seen?.keys.has(index)) fits = check.visitAt(unevaluatedItems, item, place, index) && fits;
    seen?.keys.add(index);
  }
  return fits;
}

/** Until draft 2019-09 a tuple is a list under `items`, and `additionalItems` is for the rest. */
function checkItems(check: Checking, { schema, value, place, seen }: ArrayVisit): boolean {
  const isOldTuple = Array.isArray(schema["items"]);
  const tuple: unknown = isOldTuple ? schema["items"] : schema["prefixItems"];
  const first: readonly unknown[] = Array.isArray(tuple) ? tuple : [];
  const rest = isOldTuple ? schema["additionalItems"] : schema["items"];
  let fits = true;
  for (const [index, item] of value.entries()) {
    const own = index < first.length ? first[index] : rest;
    if (own === undefined) continue;
    fits = check.visitAt(own, item, place, index) && fits;
    seen?.keys.add(index);
  }
  return fits;
}

function checkContains(check: Checking, { schema, value, place, seen }: ArrayVisit): boolean {
  const { contains, minContains, maxContains } = schema;
  if (contains === undefined) return true;
  const least = typeof minContains === "number" ? minContains : 1;
  const most = typeof maxContains === "number" ? maxContains : Number.POSITIVE_INFINITY;
  let found = 0;
  for (const [index, item] of value.entries()) {
    if (!check.wouldFit(contains, item, { parent: place, key: index, open: [] })) continue;
    found += 1;
    seen?.keys.add(index);
  }
  if (found >= least && found <= most) return true;
  const range = most === Number.POSITIVE_INFINITY ? `at least ${least}` : `at least ${least} and at most ${most}`;
  return check.fail(place, `must contain ${range} valid item(s)`);
}

function areUnique(check: Checking, items: readonly unknown[]): boolean {
  const known = new Set<string>();
  for (const item of items) {
    const text = textOf(item, check.limit);
    if (known.has(text)) return false;
    known.add(text);
  }
  return true;
}
