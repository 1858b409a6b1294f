import { describe, expect, test } from "vitest";
import { z } from "zod";
import * as mini from "zod/mini";
import { outputSchemaOf } from "../../src/agents/output-schema.ts";

const price = z.object({ francs: z.number(), note: z.string().optional() });

async function read(schema: z.core.$ZodType, text: string) {
  const parsed = await outputSchemaOf("desk", schema).parse(text);
  return parsed.ok ? parsed.value : parsed.issues;
}

describe("the JSON of an answer", () => {
  test.each([
    ["alone", '{"francs":12}'],
    ["in a fenced block", '```json\n{"francs":12}\n```'],
    ["in a fenced block of one line", '```json {"francs":12}```'],
    ["in a sentence", 'It costs {"francs":12}, I think.'],
    ["in a fenced block between sentences", 'Here it is:\n\n```\n{"francs":12}\n```\n\nAnything else?'],
    ["after thoughts", '<think>\nIt says {12}.\n</think>\n\n{"francs":12}'],
    ["after thoughts that contain another", '<thinking>{"francs":1}</thinking>{"francs":12}'],
    ["after the end of thoughts", 'Perhaps {"francs":1}.\n</think>\n{"francs":12}'],
    ["before thoughts", '{"francs":12}\n<think>Or {"francs":1}?</think>'],
    ["before thoughts that are cut", '{"francs":12}\n<think>Or {"francs":1}? Let me'],
    ["in a fenced block after thoughts", '<think>12</think>\n```json\n{"francs":12}\n```'],
    ["after nested thoughts", '<think>a<think>{"francs":1}</think>{"francs":2}</think>{"francs":12}'],
    ["after thoughts in Mistral's format", '[THINK]{"francs":1}[/THINK]{"francs":12}'],
    [
      "in the final channel",
      '<|channel|>analysis<|message|>{"francs":1}<|end|><|start|>assistant<|channel|>final<|message|>{"francs":12}<|return|>',
    ],
    ["as the last one that fits", '{"francs":1} or rather {"francs":12}, not {"dollars":14}'],
    ["with brackets in its texts", `So: {"francs":12}, "a } and {".`],
    ["as a text that was encoded twice", JSON.stringify('{"francs":12}')],
    ["with a number as a text and a null", '{"francs":"12","note":null}'],
    ["after brackets that are never closed", '[ { ( {"francs":12}'],
  ])("is found %s", async (_where, text) => {
    expect(await read(price, text)).toEqual({ francs: 12 });
  });

  test("keeps tags and fences inside its texts", async () => {
    const value = { francs: 12, note: "<think>\n```\n{}\n```\n</think>" };
    expect(await read(price, JSON.stringify(value))).toEqual(value);
    expect(await read(price, `\`\`\`json\n${JSON.stringify({ ...value, note: "```" })}\n\`\`\``)).toEqual({
      ...value,
      note: "```",
    });
  });

  test("is never taken from thoughts", async () => {
    for (const text of [
      '<think>{"francs":12}</think>',
      '{"francs":12}</think>Sorry.',
      '<think>So {"francs":12}',
      '<Think>{"francs":12}</THINK>',
    ]) {
      expect(await read(price, text)).toBe("it is not JSON");
    }
  });

  test("of a misfit is reported for the last document", async () => {
    expect(await read(price, '{"francs":"a"} {"dollars":1}')).toContain("francs: ");
    expect(await read(price, "none")).toBe("it is not JSON");
  });

  test("is found in time proportional to the text", async () => {
    const before = process.cpuUsage().user;
    await read(price, '{"'.repeat(500_000));
    await read(price, "[".repeat(1_000_000));
    await read(price, "<think>".repeat(200_000));
    await read(price, "```\n".repeat(200_000));
    expect(process.cpuUsage().user - before).toBeLessThan(5_000_000);
  });
});

describe("a root that is not an object", () => {
  const tree = z.union([
    z.string(),
    z.object({
      get inner() {
        return z.array(tree);
      },
    }),
  ]);
  test.each([
    ["a list", z.array(z.number()), [1, 2]],
    ["a text", z.string(), "a"],
    ["an enum", z.enum(["red", "blue"]), "red"],
    ["a number", z.number(), 12],
    ["a union", z.union([z.object({ a: z.string() }), z.object({ b: z.number() })]), { b: 1 }],
    ["a recursive union", tree, { inner: ["a", { inner: [] }] }],
  ])("%s is requested in an object, and read with and without it", async (_name, schema: z.ZodType, value) => {
    const { sentSchema } = outputSchemaOf("desk", schema);
    expect(sentSchema).toMatchObject({ type: "object", required: ["value"], additionalProperties: false });
    expect(z.fromJSONSchema(sentSchema as Parameters<typeof z.fromJSONSchema>[0]).safeParse({ value }).success).toBe(
      true,
    );
    expect(await read(schema, JSON.stringify({ value }))).toEqual(value);
    expect(await read(schema, JSON.stringify(value))).toEqual(value);
    expect(await read(schema, `\`\`\`\n${JSON.stringify(value)}\n\`\`\``)).toEqual(value);
  });

  test("an object is not wrapped", () => {
    const { jsonSchema, sentSchema } = outputSchemaOf("desk", price);
    expect(sentSchema).toEqual(jsonSchema);
  });

  test("an object with its own `value` member is not unwrapped", async () => {
    expect(await read(z.object({ value: z.number() }), '{"value":1}')).toEqual({ value: 1 });
  });
});

test("schemas of zod/mini validate answers", async () => {
  const schema = mini.object({ francs: mini.number().check(mini.refine(async (francs) => francs > 0, "too cheap")) });
  expect(await read(schema, '{"francs":12}')).toEqual({ francs: 12 });
  expect(await read(schema, '{"francs":0}')).toBe("francs: too cheap");
});
