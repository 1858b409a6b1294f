export interface OddSchema {
  /** What is odd about it. */
  readonly name: string;
  readonly schema: unknown;
  /** Arguments that the tool takes. Default: none. */
  readonly right?: object;
  /** Arguments that are refused before the call. Default: not tried. */
  readonly wrong?: object;
  /** What `warnings` names as not checked. Default: everything is checked. */
  readonly unchecked?: RegExp;
}

const draft04 = "http://json-schema.org/draft-04/schema#";
const draft06 = "http://json-schema.org/draft-06/schema#";
const draft07 = "http://json-schema.org/draft-07/schema#";
const draft2019 = "https://json-schema.org/draft/2019-09/schema";
const draft2020 = "https://json-schema.org/draft/2020-12/schema";

const object = (properties: object, more: object = {}): object => ({ type: "object", properties, ...more });
const text = { type: "string" };
const unusable = /the server's schema cannot be used/;

/** A schema inside a schema, this many times. */
function nested(levels: number): object {
  let schema: object = { type: "string" };
  for (let level = 0; level < levels; level += 1) schema = object({ a: schema });
  return schema;
}

/** Each definition refers to the next one twice: checking all branches takes 2 to the power of `levels` steps. */
function doubling(levels: number): object {
  const definitions = Array.from({ length: levels }, (_, level) => {
    const next = level + 1 === levels ? { type: "integer" } : { $ref: `#/$defs/d${level + 1}` };
    return [`d${level}`, { allOf: [next, next] }];
  });
  return object({ a: { $ref: "#/$defs/d0" } }, { $defs: Object.fromEntries(definitions) as object });
}

/** Schemas as servers send them, by mistake or on purpose. */
export const oddSchemas: readonly OddSchema[] = [
  { name: "none", schema: undefined },
  { name: "null", schema: null },
  { name: "true", schema: true, unchecked: unusable },
  { name: "false", schema: false, unchecked: unusable },
  { name: "a text", schema: "text", unchecked: unusable },
  { name: "a list", schema: [], unchecked: unusable },
  { name: "no type", schema: { properties: { a: text } } },
  { name: "empty", schema: {} },
  { name: "another root", schema: { type: "string" }, unchecked: unusable },
  { name: "several types of the root", schema: { type: ["object", "null"] } },
  { name: "a choice at the root", schema: { anyOf: [{ type: "object" }, text] } },
  {
    name: "a reference at the root",
    schema: { $ref: "#/$defs/a", $defs: { a: { type: "object" } } },
  },
  {
    name: "draft 4",
    schema: { $schema: draft04, id: "a", ...object({ a: { type: "number", minimum: 1, exclusiveMinimum: true } }) },
    right: { a: 2 },
    wrong: { a: 1 },
  },
  {
    name: "draft 6",
    schema: { $schema: draft06, $id: "https://example.com/a", ...object({ a: { const: 1 } }) },
    right: { a: 1 },
    wrong: { a: 2 },
  },
  {
    name: "draft 7",
    schema: {
      $schema: draft07,
      ...object({ a: { $ref: "#/definitions/a" } }, { definitions: { a: { type: "integer" } } }),
    },
    right: { a: 1 },
    wrong: { a: "x" },
  },
  {
    name: "draft 2019-09",
    schema: { $schema: draft2019, ...object({ a: {}, b: {} }, { dependentRequired: { a: ["b"] } }) },
    right: { a: 1, b: 1 },
    wrong: { a: 1 },
  },
  {
    name: "draft 2020-12",
    schema: { $schema: draft2020, ...object({ a: { type: "array", prefixItems: [text], items: false } }) },
    right: { a: ["x"] },
    wrong: { a: ["x", 1] },
  },
  {
    name: "an unknown draft",
    schema: { $schema: "https://example.com/mine", ...object({ a: text }) },
    wrong: { a: [] },
  },
  {
    name: "a cycle of references",
    schema: object({ a: { $ref: "#/$defs/a" } }, { $defs: { a: object({ a: { $ref: "#/$defs/a" } }) } }),
    right: { a: { a: { a: {} } } },
    wrong: { a: { a: 5 } },
  },
  {
    name: "a reference to itself",
    schema: object({ a: { $ref: "#/properties/a" } }),
    right: { a: 1 },
    unchecked: /refers back to the schema that contains it/,
  },
  {
    name: "a foreign reference",
    schema: object({ a: { $ref: "https://example.com/schema.json" } }),
    right: { a: 1 },
    unchecked: /does not refer to a schema in this document/,
  },
  {
    name: "a missing reference",
    schema: object({ a: { $ref: "#/$defs/missing" } }),
    right: { a: 1 },
    unchecked: /does not refer to a schema in this document/,
  },
  { name: "a reference that doubles 40 times", schema: doubling(40) },
  {
    name: "a tower of allOf",
    schema: { type: "object", allOf: [{ allOf: [{ allOf: [{ properties: { a: text }, required: ["a"] }] }] }] },
    right: { a: "x" },
    wrong: {},
  },
  {
    name: "types of a property",
    schema: object({ a: { type: ["string", "null"] } }),
    right: { a: null },
    wrong: { a: {} },
  },
  { name: "boolean schemas", schema: object({ a: true, b: false }), right: { a: 1 }, wrong: { b: 1 } },
  {
    name: "schemas that are none",
    schema: object({ a: 5, b: null }),
    right: { a: 1 },
    unchecked: /it is not a schema/,
  },
  { name: "properties that are a list", schema: { type: "object", properties: [] }, unchecked: /./ },
  {
    name: "catastrophic patterns",
    schema: object({ a: { type: "string", pattern: "^(a+)+$" } }, { patternProperties: { "^(b|b)*$": text } }),
    right: { a: "aaa" },
    wrong: { a: `${"a".repeat(5_000)}!` },
  },
  {
    name: "a pattern that is none",
    schema: object({ a: { type: "string", pattern: "(" } }),
    right: { a: "x" },
    unchecked: /the pattern/,
  },
  {
    name: "an unknown format",
    schema: object({ a: { type: "string", format: "unheard-of" } }),
    right: { a: "x" },
  },
  {
    name: "an enormous enum",
    schema: object({ a: { enum: Array.from({ length: 20_000 }, (_, index) => `v${index}`) } }),
    right: { a: "v19999" },
    wrong: { a: "w" },
  },
  { name: "an empty enum", schema: object({ a: { enum: [] } }), wrong: { a: 1 } },
  { name: "40 levels", schema: nested(40), right: { a: { a: {} } }, wrong: { a: { a: 5 } } },
  { name: "1,000 levels", schema: nested(1_000), unchecked: /nested deeper than the permitted/ },
  {
    name: "a long description",
    schema: object({ a: text }, { description: "x".repeat(300_000) }),
    unchecked: /larger than the permitted/,
  },
  {
    name: "unevaluatedProperties",
    schema: object({ a: {} }, { unevaluatedProperties: false }),
    right: { a: 1 },
    wrong: { b: 1 },
  },
  {
    name: "names in other scripts",
    schema: object({ größe: { type: "integer" }, 名前: text, "😀": {} }),
    right: { größe: 1, 名前: "x" },
    wrong: { größe: "x" },
  },
  {
    name: "names of prototypes",
    schema: object(JSON.parse('{ "__proto__": { "type": "string" }, "constructor": { "type": "integer" } }') as object),
    right: {},
    unchecked: /this key is not permitted/,
  },
  { name: "a default of another type", schema: object({ a: { type: "integer", default: "x" } }), wrong: { a: "y" } },
  { name: "required twice", schema: object({ a: {} }, { required: ["a", "a"] }), right: { a: 1 }, wrong: {} },
  { name: "required that is a text", schema: object({ a: {} }, { required: "a" }), unchecked: /is not valid here/ },
  {
    name: "a constant object",
    schema: object({ a: { const: { b: [1] } } }),
    right: { a: { b: [1] } },
    wrong: { a: {} },
  },
  {
    name: "dependentSchemas",
    schema: object({ a: {}, b: {} }, { dependentSchemas: { a: { required: ["b"] } } }),
    right: { b: 1 },
    wrong: { a: 1 },
  },
  {
    name: "if, then, else",
    schema: object(
      { a: {} },
      Object.fromEntries(["if", "then", "else"].map((name, index) => [name, { required: ["abc"[index]] }])),
    ),
    right: { c: 1 },
    wrong: { a: 1 },
  },
  { name: "nothing fits", schema: { type: "object", not: {} }, wrong: {} },
  {
    name: "a contradiction",
    schema: object({}, { additionalProperties: false, oneOf: [{}, {}] }),
    wrong: {},
  },
];
