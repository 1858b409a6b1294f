import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { outputSchemaOf } from "../../src/agents/output-schema.ts";
import { partialJsonIn } from "../../src/agents/partial-json.ts";

/** Whether `part` is what a reader of a cut `whole` may see: nothing wrong, only less. */
function isPartOf(part: unknown, whole: unknown): boolean {
  if (typeof part === "string") return typeof whole === "string" && whole.startsWith(part);
  if (Array.isArray(part)) return Array.isArray(whole) && part.every((item, index) => isPartOf(item, whole[index]));
  if (typeof part !== "object" || part === null) return Object.is(part, whole);
  const members = whole as Record<string, unknown>;
  return Object.entries(part).every(([name, value]) => Object.hasOwn(members, name) && isPartOf(value, members[name]));
}

describe("the value of a cut answer", () => {
  it("is a part of the whole value, for each value and each place of the cut", () => {
    const documents = fc.oneof(fc.array(fc.jsonValue()), fc.dictionary(fc.string(), fc.jsonValue()));
    fc.assert(
      fc.property(documents, fc.boolean(), fc.nat(), (value, isIndented, place) => {
        const text = JSON.stringify(value, null, isIndented ? 2 : 0);
        const whole: unknown = JSON.parse(text);
        const cut = text.slice(0, 1 + (place % text.length));
        expect(isPartOf(partialJsonIn(cut), whole)).toBe(true);
        expect(partialJsonIn(text)).toEqual(whole);
      }),
    );
  });

  it.each([
    ['{"a": "hel', { a: "hel" }],
    ['{"a": "hel\\', { a: "hel" }],
    ['{"a": "hel\\u00', { a: "hel" }],
    ['{"a": "hel\\\\', { a: "hel\\" }],
    ['{"a": 1', {}],
    ['{"a": 12, "b": tr', { a: 12 }],
    ['{"a": true, "b', { a: true }],
    ['{"a": [1, 2, {"c": "x', { a: [1, 2, { c: "x" }] }],
    ["[[1], [2", [[1], []]],
    ['{"__proto__": {"a": "b', JSON.parse('{"__proto__": {"a": "b"}}') as unknown],
    ["", undefined],
    ["Let me see", undefined],
    ['Here it is:\n```json\n{"a": "x', { a: "x" }],
    ['<think>{"a": 1} or not</think>{"a": "x', { a: "x" }],
    ['<think>{"a": "thought', undefined],
    ['First {"a": 1}, then {"a": "x', { a: "x" }],
    ['{"a": 1}\n```\nDone.', { a: 1 }],
    ["{a: 1", undefined],
    ["}{", {}],
    ["[}", undefined],
  ])("of %j is %j", (text, value) => expect(partialJsonIn(text)).toEqual(value));

  it("goes only as deep as code can walk", () => {
    expect(JSON.stringify(partialJsonIn("[".repeat(200_000)))).toBe("[".repeat(64) + "]".repeat(64));
    expect(partialJsonIn("{[".repeat(100_000))).toBeUndefined();
  });
});

describe("an output schema", () => {
  it("unwraps the value of a list at the root", () => {
    const { partial } = outputSchemaOf("a", z.array(z.string()));
    expect(["{", '{"value": [', '{"value": ["a", "b', '["a"'].map(partial)).toEqual([undefined, [], ["a", "b"], ["a"]]);
  });

  it("shows no list in place of an object", () => {
    const { partial } = outputSchemaOf("a", z.object({ n: z.number() }));
    expect(['As in [1], {"n": 1,', "As in [1"].map(partial)).toEqual([{ n: 1 }, undefined]);
  });
});
