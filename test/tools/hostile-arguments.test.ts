import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { defineTool, type ParsedArguments, type ToolParameters } from "../../src/tools/index.ts";
import { amount } from "../support/full.ts";

const zodOrder = z.object({
  item: z.string(),
  lines: z.array(z.object({ size: z.enum(["small", "large"]), count: z.number().int().min(1) })).optional(),
});
const jsonOrder = JSON.stringify({
  type: "object",
  properties: {
    item: { type: "string" },
    lines: {
      type: "array",
      items: {
        type: "object",
        properties: { size: { enum: ["small", "large"] }, count: { type: "integer", minimum: 1 } },
        required: ["size", "count"],
      },
    },
  },
  required: ["item"],
});

function orderTool(parameters: ToolParameters) {
  return defineTool({ name: "order", description: "Orders.", parameters, execute: () => "done" });
}

/** The rules of both schemas, in plain code. */
function isOrder(value: unknown): boolean {
  const { item, lines = [] } = value as { item: unknown; lines?: unknown };
  if (typeof item !== "string" || !Array.isArray(lines)) return false;
  return lines.every((line: { size?: unknown; count?: unknown } | null) => {
    const { size, count } = line ?? {};
    return (size === "small" || size === "large") && Number.isInteger(count) && Number(count) >= 1;
  });
}

const hugeText = `{"item":"${"a".repeat(5_000_000)}"}`;
const line = fc.record({ size: fc.constantFrom("small", "large"), count: fc.integer({ min: 1, max: 9 }) });
const order = fc
  .record({ item: fc.string(), lines: fc.array(line, { maxLength: 5 }) })
  .map((value) => JSON.stringify(value));
const part = fc.double({ min: 0, max: 1, noNaN: true });
const depth = fc.oneof(fc.integer({ min: 195, max: 205 }), fc.integer({ min: 1, max: 10_000 }));

const hostile = fc.oneof(
  { weight: 4, arbitrary: order },
  { weight: 4, arbitrary: fc.tuple(order, part).map(([text, at]) => text.slice(0, Math.floor(text.length * at))) },
  { weight: 4, arbitrary: fc.tuple(order, part, fc.string({ unit: "binary", maxLength: 3 })).map(splice) },
  {
    weight: 4,
    arbitrary: fc.record({ item: fc.jsonValue(), lines: fc.jsonValue() }).map((value) => JSON.stringify(value)),
  },
  { weight: 2, arbitrary: fc.json({ maxDepth: 6 }) },
  { weight: 1, arbitrary: fc.string({ unit: "binary" }) },
  {
    weight: 2,
    arbitrary: fc.constantFrom("__proto__", "constructor", "prototype").map((key) => `{"item":"a","${key}":{"x":1}}`),
  },
  { weight: 1, arbitrary: fc.tuple(depth, fc.boolean()).map(([levels, closed]) => nested(levels, closed)) },
  { weight: 1, arbitrary: part.map((at) => hugeText.slice(0, 1_000_000 + Math.floor(4_000_010 * at))) },
);

function splice([text, at, put]: readonly [string, number, string]): string {
  const index = Math.floor(text.length * at);
  return text.slice(0, index) + put + text.slice(index + 1);
}

function nested(levels: number, closed: boolean): string {
  return `{"item":"a","x":${"[".repeat(levels)}${closed ? `${"]".repeat(levels)}}` : ""}`;
}

describe.each([
  ["zod", orderTool(zodOrder)],
  ["JSON Schema", orderTool(jsonOrder)],
] as const)("hostile arguments with %s (F24)", (_kind, tool) => {
  test(`${amount(10_000, 1_670)} of them: valid arguments are accepted, others give the model an error, and nothing throws`, async () => {
    const seen = { taken: 0, refused: 0 };
    await fc.assert(
      fc.asyncProperty(hostile, async (text) => {
        const parsed = await tool.parse(text);
        seen[parsed.ok ? "taken" : "refused"] += 1;
        expect(faultOf(parsed, text)).toBeUndefined();
      }),
      { numRuns: amount(10_000, 1_670) },
    );
    expect(Math.min(seen.taken, seen.refused)).toBeGreaterThan(amount(1_000, 100));
    expect(({} as Record<string, unknown>)["x"]).toBeUndefined();
  });

  test("100,000 levels are refused, complete or cut off (S12)", async () => {
    expect(await tool.parse(nested(100_000, true))).toMatchObject({
      ok: false,
      message: expect.stringContaining("200 levels"),
    });
    expect(await tool.parse(nested(100_000, false))).toMatchObject({
      ok: false,
      message: expect.stringContaining("not valid"),
    });
  });

  test("an error stays short, however long the keys on the path to a forbidden one", async () => {
    const parsed = await tool.parse(`{"item":"a","${"k".repeat(900_000)}":{"__proto__":1}}`);
    expect(parsed.ok ? 0 : parsed.message.length).toBeGreaterThan(100);
    expect(parsed.ok ? "" : parsed.message.length).toBeLessThan(2_000);
  });
});

/** The fault in the outcome for these arguments, or `undefined`. */
function faultOf(parsed: ParsedArguments, text: string): string | undefined {
  if (parsed.ok) return isOrder(parsed.value) && isOrder(parsed.json) ? undefined : "invalid arguments are accepted";
  const { message } = parsed;
  if (!message.startsWith("The tool order was not run: ")) return "the model does not learn what happened";
  if (!message.endsWith("Correct the arguments and call it again.")) return "the model does not learn what to do";
  if (message.length > 10_000) return `the message has ${message.length} characters`;
  return isRight(text) ? "valid arguments are refused" : undefined;
}

/** Whether the arguments must be accepted: JSON within the limits of size and depth, without forbidden keys, that is an order. */
function isRight(text: string): boolean {
  if (text.length > 300_000) return false;
  try {
    let isForbidden = false;
    const value: unknown = JSON.parse(text, (key, member: unknown) => {
      if (key === "__proto__" || key === "constructor" || key === "prototype") isForbidden = true;
      return member;
    });
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    return isObject && !isForbidden && isOrder(value) && depthOf(value) <= 200;
  } catch {
    return false;
  }
}

function depthOf(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  return 1 + Math.max(0, ...Object.values(value).map(depthOf));
}
