import { Ajv } from "ajv";
import { Ajv2020 } from "ajv/dist/2020.js";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { fits as fitsSchema } from "../../src/tools/schema-check.ts";
import { readDocument } from "../../src/tools/schema-document.ts";
import { amount } from "../support/full.ts";

/** Whether a value is valid without repair. */
function fits(schema: object, a: unknown): boolean {
  const document = readDocument({ type: "object", ...schema });
  return fitsSchema(document, document.root, a);
}

/** The values of `a` that the schema accepts. */
function taken(a: object, values: readonly unknown[], root: object = {}): readonly unknown[] {
  return values.filter((value) => fits({ properties: { a }, ...root }, { a: value }));
}

/** The value after a JSON round trip: with prototypes on all objects. */
const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

const draft = (version: string) => ({ $schema: `http://json-schema.org/draft-${version}/schema#` });

describe("schemas of every draft can be defined, and are checked", () => {
  test("tuples, of draft-07 and of 2020-12", () => {
    const values = [["x", 1], ["x", 1, true], ["x"], [1, 1], ["x", 1, 2]];
    const old = { items: [{ type: "string" }, { type: "number" }], additionalItems: { type: "boolean" } };
    const now = { prefixItems: old.items, items: old.additionalItems };
    for (const schema of [old, now]) expect(taken(schema, values)).toEqual([["x", 1], ["x", 1, true], ["x"]]);
    expect(taken({ items: [{}], additionalItems: false }, [[1], [1, 2]])).toEqual([[1]]);
  });

  test("exclusive limits of draft-04 are flags", () => {
    expect(taken({ minimum: 1, exclusiveMinimum: true, maximum: 3, exclusiveMaximum: true }, [1, 2, 3])).toEqual([2]);
    expect(taken({ minimum: 1, exclusiveMinimum: false }, [0, 1])).toEqual([1]);
    expect(taken({ exclusiveMinimum: 1, exclusiveMaximum: 3 }, [1, 2, 3])).toEqual([2]);
  });

  test("dependencies of draft-07, by name and by schema, and those of later drafts", () => {
    for (const dependent of [
      { dependencies: { a: ["b"], c: { required: ["d"], properties: { d: { type: "number" } } } } },
      {
        dependentRequired: { a: ["b"] },
        dependentSchemas: { c: { required: ["d"], properties: { d: { type: "number" } } } },
      },
    ]) {
      const values = [{ a: 1 }, { a: 1, b: 1 }, { c: 1 }, { c: 1, d: "x" }, { c: 1, d: 1 }, {}];
      expect(values.filter((value) => fits(dependent, value))).toEqual([{ a: 1, b: 1 }, { c: 1, d: 1 }, {}]);
    }
  });

  test("references by id, by anchor, by pointer, through nested ids", () => {
    const root = {
      $id: "https://example.com/root.json",
      $defs: {
        text: { $id: "text.json", type: "string", $defs: { short: { $anchor: "short", maxLength: 2 } } },
        number: { $id: "/numbers/one.json", type: "number" },
        old: { $id: "#old", type: "boolean" },
      },
    };
    const values = ["ab", "abc", 1, true];
    expect(taken({ $ref: "text.json" }, values, root)).toEqual(["ab", "abc"]);
    expect(taken({ $ref: "https://example.com/text.json" }, values, root)).toEqual(["ab", "abc"]);
    expect(taken({ type: "string", $ref: "text.json#short" }, values, root)).toEqual(["ab"]);
    expect(taken({ $ref: "text.json#/$defs/short" }, values, root)).toEqual(["ab", 1, true]);
    expect(taken({ $ref: "numbers/one.json" }, values, root)).toEqual([1]);
    expect(taken({ $ref: "#old" }, values, root)).toEqual([true]);
    expect(taken({ $ref: "#/$defs/number" }, values, root)).toEqual([1]);
    const aged = { ...draft("04"), definitions: { t: { id: "t.json", type: "string" } } };
    expect(taken({ $ref: "t.json" }, values, aged)).toEqual(["ab", "abc"]);
  });

  test("keywords next to a $ref count only since 2019-09", () => {
    const root = { $defs: { s: { type: "string" } } };
    const beside = { $ref: "#/$defs/s", maxLength: 1 };
    expect(taken(beside, ["a", "ab"], root)).toEqual(["a"]);
    expect(taken(beside, ["a", "ab"], { ...root, ...draft("07") })).toEqual(["a", "ab"]);
  });

  test("unevaluated properties and items", () => {
    const root = {
      properties: { a: {} },
      anyOf: [{ required: ["b"], properties: { b: { type: "number" } } }, { properties: { c: {} } }],
      unevaluatedProperties: false,
    };
    const values = [{ a: 1 }, { b: 1 }, { b: "x" }, { c: 1 }, { a: 1, b: 1, c: 1 }, { d: 1 }];
    expect(values.filter((value) => fits(root, value))).toEqual([{ a: 1 }, { b: 1 }, { c: 1 }, { a: 1, b: 1, c: 1 }]);
    expect(
      taken({ prefixItems: [true], contains: { type: "string" }, unevaluatedItems: false }, [
        [1, "x"],
        [1, 2, "x"],
      ]),
    ).toEqual([[1, "x"]]);
  });

  test.each<[string, readonly string[], readonly string[]]>([
    ["date", ["2024-02-29"], ["2023-02-29", "2024-13-01", "24-01-01"]],
    ["date-time", ["2024-02-29T12:00:00Z", "2024-02-29t12:00:00.5+01:00"], ["2024-02-29T12:00:00", "2024-02-29"]],
    ["time", ["12:00:00Z"], ["12:00:00", "25:00:00Z"]],
    ["email", ["a.b@example.org"], ["a@", "a..b@example.org", "@example.org"]],
    ["hostname", ["a-b.example"], ["-a.example", "a..b"]],
    ["ipv4", ["10.0.0.1"], ["10.0.0.256"]],
    ["ipv6", ["::1", "2001:db8::1"], [":::1", "fe80::1%eth0"]],
    ["uri", ["https://a.example/x?y=1#z", "urn:isbn:1"], ["/x", "a b:c", "https://a.example/%zz"]],
    ["uri-reference", ["/x", "#y"], ["\\\\x", "#a#b"]],
    ["uuid", ["9f1c7a4e-1b2c-4d5e-8f90-123456789abc"], ["9f1c7a4e"]],
    ["duration", ["P1DT2H", "P3W"], ["P", "PT", "1D"]],
    ["json-pointer", ["", "/a~1b"], ["a", "/~2"]],
    ["relative-json-pointer", ["0#", "1/a"], ["/a", "01"]],
    ["regex", ["^a$"], ["("]],
    ["colour", ["anything at all"], []],
  ])("format %s", (format, good, bad) => {
    expect(taken({ type: "string", format }, [...good, ...bad])).toEqual(good);
  });
});

describe("it agrees with the common validator", () => {
  const value: fc.Arbitrary<unknown> = fc.oneof(
    { maxDepth: 3 },
    fc.constantFrom(null, true, false, 0, 1, 2, 1.5, -3, "", "a", "ab", "abc", "1"),
    fc.array(fc.constantFrom(1, "a", null, [1], { a: 1 }), { maxLength: 4 }),
    fc.dictionary(fc.constantFrom("a", "b", "c", "x1"), fc.constantFrom(1, "a", true, { a: 1 }, [1]), { maxKeys: 3 }),
  );
  const { schema } = fc.letrec<{ schema: object | boolean }>((tie) => {
    const some = tie("schema");
    const names = fc.constantFrom("a", "b", "c");
    const keywords = {
      type: fc.oneof(
        fc.constantFrom("string", "number", "integer", "object", "array", "null", "boolean"),
        fc.uniqueArray(fc.constantFrom("string", "integer", "object"), { minLength: 1 }),
      ),
      const: value,
      enum: fc.uniqueArray(value, { minLength: 1, maxLength: 3, selector: (one) => JSON.stringify(one) }),
      minimum: fc.constantFrom(0, 1),
      exclusiveMaximum: fc.constantFrom(1, 2),
      multipleOf: fc.constantFrom(1, 2, 0.5),
      minLength: fc.nat(2),
      maxLength: fc.nat(2),
      pattern: fc.constantFrom("^a", "b$", "\\d"),
      prefixItems: fc.array(some, { minLength: 1, maxLength: 2 }),
      items: some,
      contains: some,
      minItems: fc.nat(2),
      maxItems: fc.nat(2),
      uniqueItems: fc.boolean(),
      properties: fc.dictionary(names, some, { maxKeys: 2 }),
      patternProperties: fc.dictionary(fc.constantFrom("^x", "a"), some, { maxKeys: 1 }),
      additionalProperties: some,
      propertyNames: fc.constantFrom({ maxLength: 1 }, { pattern: "^[ab]" }),
      required: fc.uniqueArray(names, { maxLength: 2 }),
      minProperties: fc.nat(2),
      dependentRequired: fc.dictionary(names, fc.uniqueArray(names, { maxLength: 2 }), { maxKeys: 1 }),
      dependentSchemas: fc.dictionary(names, some, { maxKeys: 1 }),
      allOf: fc.array(some, { minLength: 1, maxLength: 2 }),
      anyOf: fc.array(some, { minLength: 1, maxLength: 2 }),
      oneOf: fc.array(some, { minLength: 1, maxLength: 3 }),
      not: some,
      ...Object.fromEntries(["if", "then", "else"].map((name) => [name, some])),
      unevaluatedProperties: some,
      unevaluatedItems: some,
    };
    const chosen = fc
      .uniqueArray(fc.constantFrom(...Object.keys(keywords)), { minLength: 1, maxLength: 4 })
      .chain((keys) => fc.record(Object.fromEntries(Object.entries(keywords).filter(([key]) => keys.includes(key)))));
    return { schema: fc.oneof({ maxDepth: 3, depthIdentifier: "schema" }, fc.boolean(), chosen) };
  });

  test("for every schema and value", () => {
    const judge = new Ajv2020({ strict: false, logger: false, validateSchema: false });
    let refused = 0;
    fc.assert(
      fc.property(schema.map(plain), fc.array(value.map(plain), { minLength: 1, maxLength: 6 }), (a, values) => {
        const validate = judge.compile({ type: "object", properties: { a: a as object } });
        const expected = values.filter((one) => validate({ a: one }));
        judge.removeSchema();
        refused += values.length - expected.length;
        expect(taken(a as object, values)).toEqual(expected);
      }),
      { numRuns: amount(2_000, 330) },
    );
    expect(refused).toBeGreaterThan(amount(1_000, 100));
  });

  test("for draft-07 too", () => {
    const judge = new Ajv({ strict: false, logger: false });
    const schema = { ...draft("07"), items: [{ type: "string" }], additionalItems: { $ref: "#/definitions/n" } };
    const root = { ...draft("07"), type: "object", definitions: { n: { type: "number" } }, properties: { a: schema } };
    const { $schema: _draft, ...inner } = schema;
    const validate = judge.compile({ ...root, properties: { a: inner } });
    fc.assert(
      fc.property(value, (one) => {
        expect(fits({ ...root, properties: { a: inner } }, { a: one })).toBe(validate({ a: one }));
      }),
    );
  });
});
