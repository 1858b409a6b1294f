import { expect, test } from "vitest";
import { formOf } from "../../src/mcp/mcp-form.ts";

const schema = (properties: object, required: readonly string[] = []): object => ({
  type: "object",
  properties,
  required,
});
const stay = schema(
  {
    nights: { type: "integer", minimum: 1, title: "Nights", pattern: "(a+)+$" },
    name: { type: "string", minLength: 2, format: "email" },
    breakfast: { type: "boolean" },
    extras: {
      type: "array",
      items: {
        anyOf: [
          { const: "s", title: "Sauna" },
          { const: "p", title: "Parking" },
        ],
      },
    },
    floor: { type: "string", enum: ["low", "high"] },
  },
  ["nights"],
);

test.each([
  ['{"nights":2,"extras":["s"],"breakfast":true}', { nights: 2, extras: ["s"], breakfast: true }],
  ["2", { nights: 2 }],
  ['{"nights":"2"}', { nights: 2 }],
])("an answer that fits: %s", async (text, content) => {
  expect(await formOf(stay)?.read(text)).toEqual({ ok: true, content });
});

test.each([
  ["soon", /nights/],
  ["0", /nights/],
  ["{}", /nights/],
  ["[2]", /nights/],
  ['{"nights":2,"floor":"top"}', /floor/],
  ['{"nights":2,"extras":["x"]}', /extras/],
  ['{"nights":2,"name":"x"}', /name/],
  ['{"nights":2,"__proto__":{"a":1}}', /./],
  ['{"nights":{"deep":1}}', /nights/],
  ["x".repeat(200_000), /more than 100000 characters/],
])("an answer that does not fit: %.30s", async (text, problem) => {
  const read = await formOf(stay)?.read(text);
  expect(read).toMatchObject({ ok: false, problem: expect.stringMatching(problem) });
});

test.each([
  [schema({ a: { type: "boolean" } }), "yes", { a: true }],
  [schema({ a: { type: "number" } }), "-2.5", { a: -2.5 }],
  [schema({ a: { type: "string" } }), " two words ", { a: "two words" }],
  [schema({ a: { type: "string", oneOf: [{ const: "r1", title: "Sea" }] } }), "Sea", { a: "r1" }],
  [schema({ a: { type: "array", items: { type: "string", enum: ["x", "y"] } } }), "x, y", { a: ["x", "y"] }],
  [schema({}), "anything", {}],
])("an answer without JSON", async (given, text, content) => {
  expect(await formOf(given)?.read(text)).toEqual({ ok: true, content });
});

test.each([
  null,
  [],
  {},
  { type: "object" },
  schema({ a: { type: "object" } }),
  schema({ a: { type: "array", items: { type: "array" } } }),
  schema({ a: { type: "string", enum: [] } }),
  schema({ a: { type: "string", enum: [1] } }),
  schema({ a: { $ref: "#/a" } }),
  schema({ "": { type: "string" } }),
  schema(Object.fromEntries(Array.from({ length: 51 }, (_, index) => [`a${index}`, { type: "string" }]))),
  schema(
    Object.fromEntries(
      Array.from({ length: 50 }, (_, index) => [`a${index}`, { type: "string", title: "x".repeat(999) }]),
    ),
  ),
])("a schema that the protocol does not allow: %j", (given) => {
  expect(formOf(given)).toBeUndefined();
});

test("nothing of a server but the protocol's keywords is shown or checked", () => {
  expect(JSON.stringify(formOf(stay)?.schema)).not.toContain("pattern");
});
