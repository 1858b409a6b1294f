import { describe, expect, test } from "vitest";
import { defineTool } from "../../src/tools/index.ts";

function tool(schema: object) {
  const parameters = JSON.stringify({ type: "object", ...schema });
  return defineTool({ name: "foreign", description: "From elsewhere.", parameters, execute: () => "done" });
}

/** Processor time, so that a busy machine does not fail the test; without a bound each of these ran for minutes or endlessly. */
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

describe("a foreign schema cannot block the event loop (S11)", () => {
  test("patterns with catastrophic backtracking", async () => {
    const schema = {
      properties: { a: { type: "string", pattern: "^(a+)+$" } },
      patternProperties: { "^(k|k)*!$": {} },
    };
    expect(await answerOf(schema, `{"a":"${"a".repeat(5_000)}!"}`)).toContain("takes too long");
    expect(await answerOf(schema, `{"${"k".repeat(5_000)}":1}`)).toContain("takes too long");
    expect(await answerOf(schema, '{"a":"aaa","kk!":1}')).toBe("accepted");
    expect(await answerOf(schema, '{"a":"aab"}')).toMatch(/a: .*pattern/);
  });

  test("references that double at each level", async () => {
    const $defs: Record<string, object> = { d30: { type: "string" } };
    for (let level = 0; level < 30; level += 1) {
      const next = { $ref: `#/$defs/d${level + 1}` };
      $defs[`d${level}`] = { anyOf: [next, next] };
    }
    expect(await answerOf({ $defs, properties: { a: { $ref: "#/$defs/d0" } } }, '{"a":1}')).toContain("takes too long");
  });

  test("recursion that doubles with the depth of the arguments", async () => {
    const child = { properties: { a: { $ref: "#" } } };
    const nested = `${'{"a":'.repeat(100)}1${"}".repeat(100)}`;
    expect(await answerOf({ oneOf: [child, { not: child }, child] }, nested)).toContain("takes too long");
  });

  test("an endlessly self-referencing schema is ignored where it recurses", async () => {
    expect(await answerOf({ allOf: [{ $ref: "#" }], required: ["a"] }, "{}")).toContain('required property "a"');
    expect(await answerOf({ allOf: [{ $ref: "#" }] }, "{}")).toBe("accepted");
  });

  test("a long list against a long list", async () => {
    const values = Array.from({ length: 10_000 }, (_, index) => ({ index }));
    const list = JSON.stringify({ a: Array.from({ length: 50_000 }, () => ({ index: 0.5 })) });
    expect(await answerOf({ properties: { a: { type: "array", contains: { enum: values } } } }, list)).toContain(
      "takes too long",
    );
    const distinct = JSON.stringify({ a: Array.from({ length: 50_000 }, (_, index) => [index]) });
    const unique = { properties: { a: { type: "array", uniqueItems: true } } };
    expect(await answerOf(unique, distinct)).toContain("takes too long");
  });

  test("many properties against many schemas", async () => {
    const members = JSON.stringify(Object.fromEntries(Array.from({ length: 12_000 }, (_, index) => [`p${index}`, 1])));
    const rest = { anyOf: Array.from({ length: 1_000 }, (_, index) => ({ const: `${index}` })) };
    expect(await answerOf({ additionalProperties: rest }, members)).toContain("takes too long");
    expect(await answerOf({ unevaluatedProperties: rest }, members)).toContain("takes too long");
  });

  test("of many errors the model gets the first", async () => {
    const $defs = { s: { type: "string" } };
    const schema = { $defs, properties: { a: { type: "array", items: { $ref: "#/$defs/s" } } } };
    expect(await answerOf(schema, `{"a":[${Array(200_000).fill("1").join(",")}]}`)).toMatch(/a\[0\]: .*"string"/);
  });

  test.each(["url", "regex", "uri", "uri-reference", "email", "hostname", "ipv6", "duration", "json-pointer"])(
    "format %s with a text designed against it",
    async (format) => {
      const schema = { properties: { a: { type: "string", format } } };
      const bait = [`http://[${":".repeat(200_000)}\\`, `${"(".repeat(200_000)}\\`, `a@${"a-".repeat(100_000)}!\\`];
      for (const text of bait) expect(await answerOf(schema, JSON.stringify({ a: text }))).not.toBe("accepted");
    },
  );
});

describe("an uncheckable keyword is left to the model and named with its path", () => {
  const place = { properties: { a: {} } };
  test.each<[string, object, RegExp | undefined]>([
    ["a pattern with a lookbehind", { properties: { a: { pattern: "(?<=x)y" } } }, undefined],
    ["a broken key pattern", { patternProperties: { "a)": {} } }, /#\/patternProperties: .*Unmatched/],
    ["a broken pattern", { properties: { a: { pattern: "(" } } }, /#\/properties\/a\/pattern: .*Unterminated group/],
    ["a pattern in another syntax", { properties: { a: { pattern: "^a\\Z" } } }, /Invalid escape/],
    [
      "a reference out of the schema",
      { $ref: "https://example.com/s" },
      /^#: \$ref "https.*does not refer to a schema in this document/,
    ],
    ["a reference to nothing", { ...place, $ref: "#/$defs/none" }, /"#\/\$defs\/none" does not refer to a schema/],
    ["a reference to a value", { default: { type: "string" }, $ref: "#/default" }, /does not refer to a schema/],
    [
      "an unknown type",
      { properties: { a: { type: "file" } } },
      /#\/properties\/a\/type: "\\"file\\"" is not valid here/,
    ],
    [
      "a keyword of another type",
      { properties: { a: { minLength: "3" } } },
      /#\/properties\/a\/minLength: .* is not valid here/,
    ],
    [
      "a keyword of draft-03",
      { properties: { a: { required: true } } },
      /#\/properties\/a\/required: "true" is not valid here/,
    ],
    [
      "an $id that is not a URL",
      { properties: { a: { $id: "http://[" } } },
      /the \$id "http:\/\/\[" is not an address/,
    ],
    ["an asynchronous schema", { $async: true }, undefined],
    [
      "a format named like a property of every object",
      { properties: { a: { format: "hasOwnProperty" } } },
      /is not valid here/,
    ],
    ["1,000 subschemas", { allOf: Array.from({ length: 1_000 }, () => ({})) }, undefined],
  ])("%s", async (_name, schema, told) => {
    const subject = tool(schema);
    expect((await subject.parse('{"a":"xy"}')).ok).toBe(true);
    expect(subject.jsonSchema).toMatchObject(schema);
    expect(subject.unchecked ?? []).toHaveLength(told ? 1 : 0);
    expect(subject.unchecked?.[0] ?? "all is checked").toMatch(told ?? /^all is checked$/);
  });

  test("the rest is still checked", async () => {
    const schema = { properties: { a: { type: "string", pattern: "(", maxLength: 3 }, b: { $ref: "#/none" } } };
    expect(await answerOf(schema, '{"a":"long text","b":1}')).toMatch(/a: String is too long \(9 > 3\)/);
  });

  test("a property that only such a pattern would allow is not reported as unknown", async () => {
    const schema = { patternProperties: { "(x": {} }, additionalProperties: false };
    expect(await answerOf(schema, '{"xy":1}')).toBe("accepted");
  });

  test.each<[string, object, RegExp]>([
    ["256,001 bytes", { description: "x".repeat(256_001) }, /larger than the permitted 256000 bytes/],
    ["a key that pollutes", JSON.parse('{"properties":{"__proto__":{}}}') as object, /__proto__/],
  ])("%s is refused", (_name, schema, message) => {
    expect(() => tool(schema)).toThrow(message);
  });

  test("keywords that are data are unchanged", async () => {
    const data = { $ref: "https://example.com/s", pattern: "(", $id: "x" };
    const schema = { properties: { $ref: { type: "string" }, a: { const: data, examples: [data] } }, default: data };
    expect(await answerOf(schema, JSON.stringify({ $ref: "x", a: data }))).toBe("accepted");
    expect(await answerOf(schema, JSON.stringify({ $ref: 1, a: { ...data, more: 1 } }))).toMatch(/\$ref: .*\na: /s);
  });
});
