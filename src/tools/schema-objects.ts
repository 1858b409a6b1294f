import { isObject, type SchemaObject } from "./schema-document.ts";
import type { Checking, Visit } from "./schema-visit.ts";

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
      // Of a pattern that cannot be asked any name may be one: what is for the others says nothing of it.
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

/** A member that no other keyword speaks of. */
function checkRest(check: Checking, rest: unknown, { value, place }: ObjectVisit, name: string): boolean {
  if (rest !== false) return check.visitAt(rest, value[name], place, name);
  return check.fail(place, "must not have additional properties", `no property ${JSON.stringify(name.slice(0, 100))}`);
}

/** `dependencies` of draft-07 are names or a schema; later drafts have a keyword for either. */
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
