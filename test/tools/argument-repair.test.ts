import { describe, expect, test } from "vitest";
import { z } from "zod";
import * as mini from "zod/mini";
import { z as other } from "zod-lowest";
import * as otherMini from "zod-lowest/v4/mini";
import { defineTool, type ToolParameters } from "../../src/tools/index.ts";

async function read(parameters: ToolParameters, given: unknown) {
  const tool = defineTool({ name: "order", description: "Orders.", parameters, execute: () => "done" });
  const parsed = await tool.parse(typeof given === "string" ? given : JSON.stringify(given));
  return parsed.ok ? parsed.json : parsed.message;
}

const order = z.object({
  query: z.string(),
  limit: z.number().default(20),
  tag: z.string().optional(),
  owner: z.string().nullable().optional(),
  place: z.object({ zip: z.number().optional(), street: z.string().nullish() }).optional(),
  lines: z.array(z.object({ item: z.string(), count: z.int().optional(), note: z.string().optional() })).optional(),
  urgent: z.boolean().optional(),
});

describe.each([
  ["zod", order],
  ["JSON Schema", JSON.stringify(z.toJSONSchema(order, { io: "input" }))],
] as const)("arguments as models write them, with %s", (kind, schema) => {
  const defaults = kind === "zod" ? { limit: 20 } : {};

  test("null for an optional property counts as absent, at any depth, unless the schema allows it", async () => {
    const given = {
      query: "cats",
      limit: null,
      tag: null,
      owner: null,
      place: { zip: null, street: null },
      lines: [
        { item: "tea", count: null },
        { item: "milk", count: 2, note: null },
      ],
    };
    expect(await read(schema, given)).toEqual({
      query: "cats",
      ...defaults,
      owner: null,
      place: { street: null },
      lines: [{ item: "tea" }, { item: "milk", count: 2 }],
    });
  });

  test("the text 'null' counts as absent if neither a text nor null is valid", async () => {
    expect(await read(schema, { query: "null", limit: "null", tag: "null" })).toEqual({
      query: "null",
      ...defaults,
      tag: "null",
    });
  });

  test("null for a required property is refused", async () => {
    expect(await read(schema, { query: null })).toMatch(/query: .*string/);
  });

  test("JSON texts are decoded if the schema expects another type", async () => {
    const lines = JSON.stringify([{ item: "tea", count: "3" }]);
    expect(await read(schema, { query: "[1]", limit: "5", urgent: "true", place: '{"zip":"8000"}', lines })).toEqual({
      query: "[1]",
      limit: 5,
      urgent: true,
      place: { zip: 8000 },
      lines: [{ item: "tea", count: 3 }],
    });
  });

  test("arguments that were encoded two or three times are decoded", async () => {
    const once = JSON.stringify({ query: "cats", limit: 1 });
    for (const text of [JSON.stringify(once), JSON.stringify(JSON.stringify(once))]) {
      expect(await read(schema, text)).toEqual({ query: "cats", limit: 1 });
    }
  });

  test.each([
    ["invalid JSON", { query: "cats", limit: "five" }, /limit: /],
    ["JSON of another type", { query: "cats", urgent: "1" }, /urgent: /],
    ["a number that would lose digits", { query: "cats", limit: "12345678901234567890" }, /limit: /],
    ["a forbidden key", { query: "cats", place: '{"__proto__":{"zip":1}}' }, /place: /],
  ])("a text with %s is refused", async (_what, given, message) => {
    expect(await read(schema, given)).toMatch(message);
  });
});

test("of several alternatives the valid one counts", async () => {
  const target = z.union([
    z.object({ kind: z.literal("city"), name: z.string(), zip: z.number().optional() }),
    z.object({ kind: z.literal("point"), at: z.array(z.number()) }),
  ]);
  const schema = z.object({ to: target, also: z.union([z.string(), z.array(z.string())]).optional() });
  expect(await read(schema, { to: '{"kind":"point","at":"[1,2]"}', also: null })).toEqual({
    to: { kind: "point", at: [1, 2] },
  });
  expect(await read(schema, { to: { kind: "city", name: "Bern", zip: null }, also: '["a"]' })).toEqual({
    to: { kind: "city", name: "Bern" },
    also: '["a"]',
  });
});

test("recursive schemas are repaired completely", async () => {
  const node = z.object({
    name: z.string(),
    get children() {
      return z.array(node).optional();
    },
  });
  const leaf = { name: "c", children: null };
  const given = { name: "a", children: [{ name: "b", children: JSON.stringify([leaf]) }] };
  expect(await read(z.object({ root: node }), { root: given })).toEqual({
    root: { name: "a", children: [{ name: "b", children: [{ name: "c" }] }] },
  });
});

test("nothing is repaired if the arguments are valid, or if the author's own check refuses them", async () => {
  const loose = z.object({ any: z.any(), tag: z.string().nullish() });
  expect(await read(loose, { any: "[1]", tag: null })).toEqual({ any: "[1]", tag: null });
  let checks = 0;
  const strict = z.object({ tag: z.string().nullish() }).refine(({ tag }) => {
    checks += 1;
    return tag !== null;
  }, "needs a tag");
  expect(await read(strict, { tag: null })).toContain("needs a tag");
  expect(checks).toBe(1);
});

test.each([
  ["zod/mini", mini],
  ["zod/mini 4.0.17", otherMini as unknown as typeof mini],
])("schemas of %s work", async (_name, one) => {
  const schema = one.object({
    user: one.string().check(one.refine(async (name) => name !== "bob", "no such user")),
    limit: one._default(one.number(), 5),
    tag: one.optional(one.string()),
  });
  expect(await read(schema, { user: "ada", limit: null, tag: null })).toEqual({ user: "ada", limit: 5 });
  expect(await read(schema, { user: "bob" })).toContain("user: no such user");
  expect(await read(schema, { user: 7 })).toMatch(/user: .*expected string/);
});

test("arguments for schemas of zod 4.0.17 are repaired too", async () => {
  const schema = other.object({ limit: other.number().default(5), tags: other.array(other.string()).optional() });
  expect(await read(schema as unknown as z.ZodObject, { limit: null, tags: '["a"]' })).toEqual({
    limit: 5,
    tags: ["a"],
  });
});
