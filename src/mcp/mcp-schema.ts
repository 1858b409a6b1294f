type Schema = Readonly<Record<string, unknown>>;

const schemaMaps = ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"];
const schemaLists = ["allOf", "anyOf", "oneOf", "prefixItems"];
const schemas = [
  "additionalProperties",
  "unevaluatedProperties",
  "propertyNames",
  "items",
  "additionalItems",
  "unevaluatedItems",
  "contains",
  "not",
  "if",
  "then",
  "else",
];

/**
 * A copy of a schema in which everything that must be a schema is one: adapters of models walk through schemas, and fail at others.
 * Members that are not schemas become `{}`, other keywords without a schema are left out.
 */
export function withoutMistakes(given: Schema): Schema {
  const copy: Record<string, unknown> = { ...given };
  for (const keyword of schemaMaps) {
    const map = given[keyword];
    if (isObject(map))
      copy[keyword] = Object.fromEntries(Object.entries(map).map(([name, one]) => [name, schemaOf(one)]));
    else delete copy[keyword];
  }
  for (const keyword of schemaLists) {
    const list = given[keyword];
    if (Array.isArray(list) && list.length > 0) copy[keyword] = list.map(schemaOf);
    else delete copy[keyword];
  }
  for (const keyword of schemas) {
    const one = given[keyword];
    if (keyword === "items" && Array.isArray(one)) copy[keyword] = one.map(schemaOf);
    else if (isSchema(one)) copy[keyword] = schemaOf(one);
    else delete copy[keyword];
  }
  return copy;
}

function schemaOf(value: unknown): unknown {
  if (typeof value === "boolean") return value;
  return isObject(value) ? withoutMistakes(value) : {};
}

function isSchema(value: unknown): boolean {
  return typeof value === "boolean" || isObject(value);
}

function isObject(value: unknown): value is Schema {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
