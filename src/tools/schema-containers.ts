import { type Checking, isObject, type SchemaObject, type Visit } from "./schema-document.ts";
import { textOf } from "./schema-values.ts";

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

/** Up to draft 2019-09 a tuple is a list under `items`, and `additionalItems` is for the rest. */
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

type ObjectVisit = Visit & { readonly value: SchemaObject };

/** Keywords of objects, in all their spellings. */
export function checkObject(check: Checking, visit: ObjectVisit): boolean {
  const { schema, value, place, seen } = visit;
  const { minProperties, maxProperties, propertyNames, unevaluatedProperties } = schema;
  const names = Object.keys(value);
  check.limit.spend(names.length);
  let fits = checkRequired(check, visit, schema["required"], "");
  if (typeof minProperties === "number" && names.length < minProperties) {
    fits = check.fail(place, `must have at least ${minProperties} properties`);
  }
  if (typeof maxProperties === "number" && names.length > maxProperties) {
    fits = check.fail(place, `must have at most ${maxProperties} properties`);
  }
  if (propertyNames !== undefined) {
    for (const name of names) {
      if (check.wouldFit(propertyNames, name, { parent: place, key: name, open: [] })) continue;
      fits = check.fail(place, `property name ${JSON.stringify(name.slice(0, 100))} is not allowed`);
    }
  }
  fits = checkMembers(check, visit, names) && fits;
  fits = checkDependent(check, visit) && fits;
  if (unevaluatedProperties === undefined) return fits;
  for (const name of names) {
    if (seen?.keys.has(name)) continue;
    fits = checkRest(check, unevaluatedProperties, visit, name) && fits;
    seen?.keys.add(name);
  }
  return fits;
}

function checkRequired(check: Checking, { value, place }: ObjectVisit, required: unknown, when: string): boolean {
  if (!Array.isArray(required)) return true;
  check.limit.spend(required.length);
  let fits = true;
  for (const name of required) {
    if (typeof name !== "string" || Object.hasOwn(value, name)) continue;
    fits = check.fail(
      place,
      when === "" ? `must have required property '${name}'` : `must have property ${name} ${when}`,
    );
  }
  return fits;
}

function checkMembers(check: Checking, visit: ObjectVisit, names: readonly string[]): boolean {
  const { schema, value, place, seen } = visit;
  const own = isObject(schema["properties"]) ? schema["properties"] : {};
  const patterns = isObject(schema["patternProperties"]) ? Object.entries(schema["patternProperties"]) : [];
  const { additionalProperties } = schema;
  let fits = true;
  for (const name of names) {
    let isKnown = false;
    if (Object.hasOwn(own, name)) {
      isKnown = true;
      fits = check.visitAt(own[name], value[name], place, name) && fits;
    }
    for (const [source, member] of patterns) {
      const pattern = check.document.pattern(source);
      // A pattern that is not checked may match any name, so the keywords for the rest say nothing.
      if (pattern === undefined) isKnown = true;
      else if (pattern.test(name)) {
        isKnown = true;
        fits = check.visitAt(member, value[name], place, name) && fits;
      }
    }
    if (!isKnown && additionalProperties !== undefined) {
      isKnown = true;
      fits = checkRest(check, additionalProperties, visit, name) && fits;
    }
    if (isKnown) seen?.keys.add(name);
  }
  return fits;
}

/** A member that no other keyword covers. */
function checkRest(check: Checking, rest: unknown, { value, place }: ObjectVisit, name: string): boolean {
  if (rest !== false) return check.visitAt(rest, value[name], place, name);
  return check.fail(place, "must not have additional properties", `no property ${JSON.stringify(name.slice(0, 100))}`);
}

/** In draft-07 `dependencies` holds names or a schema; later drafts have a keyword for each. */
function checkDependent(check: Checking, visit: ObjectVisit): boolean {
  const { schema, value, place, seen } = visit;
  let fits = true;
  for (const keyword of ["dependencies", "dependentRequired", "dependentSchemas"]) {
    const dependent = schema[keyword];
    if (!isObject(dependent)) continue;
    const demands = Object.entries(dependent);
    check.limit.spend(demands.length);
    for (const [name, demand] of demands) {
      if (!Object.hasOwn(value, name)) continue;
      const demanded = typeof demand === "string" ? [demand] : demand;
      if (Array.isArray(demanded)) {
        fits = checkRequired(check, visit, demanded, `when property ${name} is present`) && fits;
      } else fits = check.visit(demanded, value, place, seen) && fits;
    }
  }
  return fits;
}
