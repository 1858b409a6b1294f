import { describe, expect, test } from "vitest";
import { defineTool } from "../../src/tools/index.ts";

function tool(schema: object) {
  const parameters = JSON.stringify({ type: "object", ...schema });
  return defineTool({ name: "foreign", description: "From elsewhere.", parameters, execute: () => "done" });
}

/** Processor time, so that a busy machine does not fail the test; each of these ran for minutes or for ever without a bound. */
async function costOf(work: () => Promise<void>): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

async function answerOf(schema: object, text: string): Promise<string> {
  const subject = tool(schema);
  let answer = "";
  const cost = await costOf(async () => {
    const parsed = await subject.parse(text);
    answer = parsed.ok ? "accepted" : parsed.message;
  });
  expect(cost).toBeLessThan(1_000);
  return answer;
}

describe("a foreign schema cannot hold the event loop (S11)", () => {
  test("patterns that make others backtrack", async () => {
    const schema = {
      properties: { a: { type: "string", pattern: "^(a+)+$" } },
      patternProperties: { "^(k|k)*!$": {} },
    };
    expect(await answerOf(schema, `{"a":"${"a".repeat(5_000)}!"}`)).toMatch(/a: must match pattern/);
    expect(await answerOf(schema, `{"${"k".repeat(5_000)}":1}`)).toBe("accepted");
    expect(await answerOf(schema, `{"a":"${"a".repeat(900_000)}"}`)).toContain("too many steps");
  });

  test("references that double at each level", async () => {
    const $defs: Record<string, object> = { d30: { type: "string" } };
    for (let level = 0; level < 30; level += 1) {
      const next = { $ref: `#/$defs/d${level + 1}` };
      $defs[`d${level}`] = { anyOf: [next, next] };
    }
    expect(await answerOf({ $defs, properties: { a: { $ref: "#/$defs/d0" } } }, '{"a":1}')).toContain("too many steps");
  });

  test("recursion that doubles with the depth of the arguments", async () => {
    const child = { properties: { a: { $ref: "#" } } };
    const nested = `${'{"a":'.repeat(100)}1${"}".repeat(100)}`;
    expect(await answerOf({ oneOf: [child, { not: child }, child] }, nested)).toContain("too many steps");
  });

  test("a schema that refers to itself without end says nothing more there", async () => {
    expect(await answerOf({ allOf: [{ $ref: "#" }], required: ["a"] }, "{}")).toContain(
      "must have required property 'a'",
    );
    expect(await answerOf({ allOf: [{ $ref: "#" }] }, "{}")).toBe("accepted");
  });

  test("a long list against a long list", async () => {
    const values = Array.from({ length: 10_000 }, (_, index) => ({ index }));
    const list = JSON.stringify({ a: Array.from({ length: 50_000 }, () => ({ index: 0.5 })) });
    expect(await answerOf({ properties: { a: { type: "array", contains: { enum: values } } } }, list)).toContain(
      "too many steps",
    );
    const distinct = JSON.stringify({ a: Array.from({ length: 50_000 }, (_, index) => [index]) });
    expect(await answerOf({ properties: { a: { type: "array", uniqueItems: true } } }, distinct)).toBe("accepted");
  });

  test("what costs more than its visits pays for it", async () => {
    const members = JSON.stringify(Object.fromEntries(Array.from({ length: 12_000 }, (_, index) => [`p${index}`, 1])));
    const rest = { anyOf: [{ type: "string" }, { type: "number" }] };
    expect(await answerOf({ additionalProperties: rest }, members)).toContain("too many steps");
    expect(await answerOf({ unevaluatedProperties: { type: "number" } }, members)).toBe("accepted");
    expect(await answerOf({ unevaluatedProperties: rest }, members)).toContain("too many steps");
    const expressions = JSON.stringify({ a: Array.from({ length: 8_000 }, (_, index) => `(a|b)${index}*`) });
    const regex = { type: "array", items: { type: "string", format: "regex" } };
    expect(await answerOf({ properties: { a: regex } }, expressions)).toContain("too many steps");
  });

  test("many mistakes: the model is told of the first", async () => {
    const $defs = { s: { type: "string" } };
    const schema = { $defs, properties: { a: { type: "array", items: { $ref: "#/$defs/s" } } } };
    expect(await answerOf(schema, `{"a":[${Array(200_000).fill("1").join(",")}]}`)).toMatch(/a\[0\]: must be string/);
  });

  test.each(["url", "regex", "uri", "uri-reference", "email", "hostname", "ipv6", "duration", "json-pointer", "byte"])(
    "format %s with a text made for it",
    async (format) => {
      const schema = { properties: { a: { type: "string", format } } };
      const bait = [`http://[${":".repeat(200_000)}\\`, `${"(".repeat(200_000)}\\`, `a@${"a-".repeat(100_000)}!\\`];
      for (const text of bait) expect(await answerOf(schema, JSON.stringify({ a: text }))).not.toBe("accepted");
    },
  );
});

describe("what cannot be checked is left to the model, and told with its place", () => {
  const place = { properties: { a: {} } };
  test.each<[string, object, RegExp | undefined]>([
    [
      "a pattern that looks behind",
      { properties: { a: { pattern: "(?<=x)y" } } },
      /#\/properties\/a\/pattern: .*looks behind/,
    ],
    ["a key pattern that refers back", { patternProperties: { "(a)\\1": {} } }, /#\/patternProperties: .*refers back/],
    ["a broken pattern", { properties: { a: { pattern: "(" } } }, /#\/properties\/a\/pattern: .*Unterminated group/],
    ["a pattern of another language", { properties: { a: { pattern: "^a\\Z" } } }, /\\Z means nothing here/],
    [
      "a reference out of the schema",
      { $ref: "https://example.com/s" },
      /^#: \$ref "https.*leads to no schema within it/,
    ],
    ["a reference to nothing", { ...place, $ref: "#/$defs/none" }, /"#\/\$defs\/none" leads to no schema/],
    ["a reference to a value", { default: { type: "string" }, $ref: "#/default" }, /leads to no schema/],
    [
      "a type that no draft knows",
      { properties: { a: { type: "file" } } },
      /#\/properties\/a\/type: "\\"file\\"" says nothing/,
    ],
    [
      "a keyword of another type",
      { properties: { a: { minLength: "3" } } },
      /#\/properties\/a\/minLength: .* says nothing/,
    ],
    [
      "a keyword of draft-03",
      { properties: { a: { required: true } } },
      /#\/properties\/a\/required: "true" says nothing/,
    ],
    ["an $id that is no address", { properties: { a: { $id: "http://[" } } }, /its id "http:\/\/\[" is no address/],
    ["an asynchronous schema", { $async: true }, undefined],
    ["10,000 subschemas", { allOf: Array.from({ length: 10_000 }, () => ({})) }, undefined],
  ])("%s", async (_name, schema, told) => {
    const subject = tool(schema);
    expect((await subject.parse('{"a":"xy"}')).ok).toBe(true);
    expect(subject.jsonSchema).toMatchObject(schema);
    expect(subject.unchecked ?? []).toHaveLength(told ? 1 : 0);
    expect(subject.unchecked?.[0] ?? "all is checked").toMatch(told ?? /^all is checked$/);
  });

  test("the rest is checked all the same", async () => {
    const schema = { properties: { a: { type: "string", pattern: "(?<=x)y", maxLength: 3 }, b: { $ref: "#/none" } } };
    expect(await answerOf(schema, '{"a":"long text","b":1}')).toMatch(/a: must have at most 3 characters/);
  });

  test("of names that only such a pattern tells apart none is called one too many", async () => {
    const schema = { patternProperties: { "(?<=x)y": {} }, additionalProperties: false };
    expect(await answerOf(schema, '{"xy":1}')).toBe("accepted");
  });

  test.each<[string, object, RegExp]>([
    ["256,001 bytes", { description: "x".repeat(256_001) }, /larger than the permitted 256000 bytes/],
    ["a key that pollutes", JSON.parse('{"properties":{"__proto__":{}}}') as object, /__proto__/],
  ])("%s is refused", (_name, schema, message) => {
    expect(() => tool(schema)).toThrow(message);
  });

  test("words that are data are left alone", async () => {
    const data = { $ref: "https://example.com/s", pattern: "(", $id: "x" };
    const schema = { properties: { $ref: { type: "string" }, a: { const: data, examples: [data] } }, default: data };
    expect(await answerOf(schema, JSON.stringify({ $ref: "x", a: data }))).toBe("accepted");
    expect(await answerOf(schema, JSON.stringify({ $ref: 1, a: { ...data, more: 1 } }))).toMatch(/\$ref: .*\na: /s);
  });
});
