import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { defineTool, type RunContext, type ToolParameters } from "../../src/tools/index.ts";
import { amount } from "../support/full.ts";

function tool(parameters: ToolParameters, maxArgumentBytes?: number) {
  return defineTool({ name: "order", description: "Orders.", parameters, maxArgumentBytes, execute: () => "done" });
}

async function refusal(parameters: ToolParameters, text: string): Promise<string> {
  const parsed = await tool(parameters).parse(text);
  return parsed.ok ? "accepted" : parsed.message;
}

const zodOrder = z.object({
  item: z.string(),
  lines: z.array(z.object({ size: z.enum(["small", "large"]), count: z.number().min(1) })).optional(),
});
const jsonOrder = JSON.stringify({
  type: "object",
  properties: {
    item: { type: "string" },
    lines: {
      type: "array",
      uniqueItems: true,
      items: {
        type: "object",
        properties: { size: { enum: ["small", "large"] }, count: { type: "number", minimum: 1 } },
      },
    },
  },
  required: ["item"],
});

describe.each([
  ["zod", zodOrder],
  ["JSON Schema", jsonOrder],
] as const)("with %s", (_kind, schema) => {
  test("valid arguments are passed to execute and to the journal", async () => {
    const order = { item: "tea", lines: [{ size: "large", count: 2 }] };
    expect(await tool(schema).parse(JSON.stringify(order))).toEqual({ ok: true, value: order, json: order });
  });

  test("changing the arguments does not affect the journal", async () => {
    const parsed = await tool(schema).parse('{"item":"tea","lines":[]}');
    if (!parsed.ok) throw new Error(parsed.message);
    (parsed.value as { lines: unknown[] }).lines.push("more");
    expect(parsed.json).toEqual({ item: "tea", lines: [] });
  });

  test("the model gets the tool, each path, and the expected value", async () => {
    const message = await refusal(schema, '{"lines":[{"size":"huge","count":0}]}');
    expect(message).toContain("tool order was not run");
    expect(message).toMatch(/\bitem\b/);
    expect(message).toMatch(/lines\[0\]\.size: .*(?:one|any) of .*small.*large/);
    expect(message).toMatch(/lines\[0\]\.count: .*(?:>= ?1|less than 1)/);
    expect(message).toContain("call it again");
  });

  test.each(["[]", "3", '"[]"', '"tea"'])("%s is not an object", async (text) => {
    expect(await refusal(schema, text)).toMatch(/must be one JSON object, not (an array|null|a number|a string)/);
  });

  test("an empty text counts as {}", async () => {
    expect(await refusal(schema, "")).toBe(await refusal(schema, "{}"));
    expect(await refusal(schema, " \n")).toBe(await refusal(schema, "{}"));
    for (const text of ["null", '""', '"{}"', '"\\"{}\\""']) {
      expect(await refusal(schema, text)).toBe(await refusal(schema, "{}"));
    }
  });

  test("truncated text is refused with its position", async () => {
    expect(await refusal(schema, '{"item":"te')).toMatch(/not valid JSON \(at position 11\)/);
  });

  test.each(["__proto__", "constructor", "prototype"])("the key %s is refused wherever it is (S9)", async (key) => {
    expect(await refusal(schema, `{"item":"tea","x":[{"${key}":{"polluted":true}}]}`)).toMatch(
      new RegExp(`${key}.*not permitted`),
    );
    expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
  });

  test("5 MB and 10,000 levels are refused", async () => {
    expect(await refusal(schema, `{"item":"${"a".repeat(5_000_000)}"}`)).toContain(
      "larger than the permitted 1000000 bytes",
    );
    expect(await refusal(schema, `{"item":${"[".repeat(10_000)}${"]".repeat(10_000)}}`)).toContain("200 levels");
    expect(await refusal(schema, `{"item":${'{"a":'.repeat(10_000)}1${"}".repeat(10_000)}}`)).toContain("200 levels");
    expect(await refusal(schema, `{"item":${"[".repeat(10_000)}`)).toContain("not valid JSON");
  });

  test("omitted errors are counted: after 20 errors the rest is a number", async () => {
    const lines = Array.from({ length: 50 }, (_, count) => ({ size: "huge", count: count + 1 }));
    expect(await refusal(schema, JSON.stringify({ item: "tea", lines }))).toMatch(/and 30 more/);
  });

  test("any text gives arguments or an error, and never throws (F24)", async () => {
    const subject = tool(schema);
    const whole = JSON.stringify({ item: "tea", lines: [{ size: "large", count: 2 }] });
    const text = fc.oneof(
      fc.string({ unit: "binary" }),
      fc.json({ maxDepth: 8 }),
      fc.nat(whole.length - 1).map((length) => whole.slice(0, length)),
      fc.record({ item: fc.jsonValue(), lines: fc.jsonValue() }).map((value) => JSON.stringify(value)),
      fc.nat(1_000).map((depth) => `{"item":${"[".repeat(depth)}${"]".repeat(depth)}}`),
    );
    await fc.assert(
      fc.asyncProperty(text, async (argumentsText) => {
        const parsed = await subject.parse(argumentsText);
        const item = parsed.ok ? (parsed.value as { item: unknown }).item : parsed.message;
        expect(typeof item).toBe("string");
      }),
      { numRuns: amount(1_000, 170) },
    );
  });
});

test("the size limit counts bytes and can be set", async () => {
  const small = tool(zodOrder, 20);
  expect((await small.parse('{"item":"tea"}')).ok).toBe(true);
  expect((await small.parse('{"item":"ääääääää"}')).ok).toBe(false);
});

describe("zod only", () => {
  test("execute gets the transformed value, the journal the same as JSON, and a restart restores it", async () => {
    const subject = tool(
      z.object({ tags: z.string().transform((text) => text.split(",")), page: z.number().default(1) }),
    );
    const parsed = await subject.parse('{"tags":"a,b"}');
    expect(parsed).toEqual({ ok: true, value: { tags: ["a", "b"], page: 1 }, json: { tags: ["a", "b"], page: 1 } });
    if (!parsed.ok) throw new Error(parsed.message);
    expect((await subject.resolveArguments(parsed.json, {} as RunContext)).args).toEqual(parsed.value);
  });

  test.each([
    ["a Date", z.string().transform((text) => new Date(text)), /at: .*class Date/],
    ["a bigint", z.string().transform(() => 1n), /at: .*bigint/],
    ["NaN", z.string().transform(Number), /at: .*NaN/],
  ])("a transform that returns %s is reported as a fault of the tool", async (_name, at, message) => {
    const text = await refusal(z.object({ at }), '{"at":"tomorrow"}');
    expect(text).toMatch(message);
    expect(text).toContain("fault of the tool");
  });

  test("a check that throws or rejects is reported and not thrown", async () => {
    const throwing = z.object({ a: z.string() }).refine(() => {
      throw new Error("database away");
    });
    expect(await refusal(throwing, '{"a":"x"}')).toContain("could not be checked (database away)");
    const rejecting = z.object({ a: z.string().refine(() => Promise.reject(new Error("database away"))) });
    expect(await refusal(rejecting, '{"a":"x"}')).toContain("could not be checked (database away)");
  });

  test("asynchronous checks and transforms run", async () => {
    const known = z.object({ user: z.string().refine(async (name) => name === "ada", "no such user") });
    expect(await refusal(known, '{"user":"ada"}')).toBe("accepted");
    expect(await refusal(known, '{"user":"bob"}')).toContain("user: no such user");
    const loaded = tool(z.object({ user: z.string().transform(async (name) => ({ name })) }));
    expect(await loaded.parse('{"user":"ada"}')).toMatchObject({ ok: true, json: { user: { name: "ada" } } });
  });

  test("a union error names what each alternative expects", async () => {
    const union = z.object({ to: z.union([z.string(), z.object({ id: z.number() })]) });
    expect(await refusal(union, '{"to":true}')).toMatch(
      /to: fits none of the alternatives \(expected string, or object\)/,
    );
  });

  test("a missing property is reported as missing", async () => {
    expect(await refusal(zodOrder, "{}")).toContain("item: is missing (expected string)");
  });
});

describe("JSON Schema only", () => {
  test("keywords that zod's own converter ignores are checked (R7)", async () => {
    const schema = JSON.stringify({
      type: "object",
      properties: { a: { type: "array", contains: { const: 1 } }, u: { type: "string", format: "uuid" } },
      patternProperties: { "^x-": { type: "number" } },
      additionalProperties: false,
      dependentRequired: { a: ["u"] },
    });
    expect(await refusal(schema, '{"a":[2]}')).toMatch(/"a" but does not have "u".*a: .*contain/s);
    expect(await refusal(schema, '{"u":"no"}')).toMatch(/u: .*format "uuid"/);
    expect(await refusal(schema, '{"x-1":"no"}')).toMatch(/x-1.*Expected "number"/);
    expect(await refusal(schema, '{"y":1}')).toMatch(/y: is not allowed/);
  });

  test("equal items are found in any order of their keys", async () => {
    const schema = '{"type":"object","properties":{"a":{"type":"array","uniqueItems":true}}}';
    expect(await refusal(schema, '{"a":[{"x":1,"y":2},{"y":2,"x":1}]}')).toContain("a: Duplicate items");
    expect(await refusal(schema, '{"a":[1,"1",{"x":1},[1]]}')).toBe("accepted");
  });

  test("references within the schema work, by pointer, anchor and to the root", async () => {
    const schema = JSON.stringify({
      $id: "https://example.com/tree",
      type: "object",
      $defs: { name: { $anchor: "name", type: "string" } },
      properties: { name: { $ref: "#name" }, other: { $ref: "#/$defs/name" }, child: { $ref: "#" } },
    });
    expect(await refusal(schema, '{"name":"a","child":{"name":"b","child":{"other":"c"}}}')).toBe("accepted");
    expect(await refusal(schema, '{"child":{"child":{"name":1,"other":2}}}')).toMatch(
      /child\.child\.name.*child\.child\.other/s,
    );
  });

  test("two schemas may have one $id", async () => {
    const first = '{"$id":"https://example.com/x","type":"object","properties":{"a":{"type":"string"}}}';
    const second = '{"$id":"https://example.com/x","type":"object","properties":{"a":{"type":"number"}}}';
    expect(await refusal(first, '{"a":"x"}')).toBe("accepted");
    expect(await refusal(second, '{"a":1}')).toBe("accepted");
  });
});
