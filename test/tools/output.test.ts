import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { excerptOf, renderOutput } from "../../src/tools/index.ts";

describe("rendering a result", () => {
  test.each<[string, unknown, string]>([
    ["a string unchanged", 'say "hi"', 'say "hi"'],
    ["undefined as an empty text", undefined, ""],
    ["null as JSON", null, "null"],
    ["a number as JSON", 4.5, "4.5"],
    ["an object as JSON", { a: [1, { b: true }], left: undefined }, '{"a":[1,{"b":true}]}'],
    ["a date as JSON", { at: new Date(0) }, '{"at":"1970-01-01T00:00:00.000Z"}'],
    ["NaN by its name", { a: Number.NaN, b: [Number.NaN] }, '{"a":"NaN","b":["NaN"]}'],
    ["infinity", [Infinity, -Infinity, 0], '["Infinity","-Infinity",0]'],
    ["NaN alone", Number.NaN, "NaN"],
    ["undefined in a list, where JSON has null", [undefined, null, { a: undefined }], '["undefined",null,{}]'],
    ["a hole in a list", Object.assign(Array(3), { 0: 1, 2: 3 }), '[1,"undefined",3]'],
    ["an invalid date", { at: new Date(Number.NaN) }, '{"at":"Invalid Date"}'],
    ["the value of toJSON", [{ toJSON: () => Number.NaN }, { toJSON: () => undefined }], '["NaN","undefined"]'],
    ["an object of a class by its fields", Object.assign(Object.create({ hidden: 1 }), { a: 1 }), '{"a":1}'],
  ])("%s", (_name, value, text) => {
    expect(renderOutput(value)).toEqual({ text });
  });

  const cycle: { self?: unknown } = {};
  cycle.self = cycle;
  let deep: unknown[] = [];
  for (let level = 0; level < 100_000; level += 1) deep = [deep];
  test.each<[string, unknown, RegExp]>([
    ["a bigint", { count: 1n }, /"count" is a bigint/],
    ["a cycle", cycle, /refers to itself/],
    ["a function", () => 1, /it is a function/],
    ["a function inside", [{ call: () => 1 }], /"call" is a function/],
    ["a symbol", Symbol("x"), /it is a symbol/],
    ["a RegExp", { found: /x/ }, /"found" is an object of class RegExp, which is empty as JSON/],
    ["an iterator", [1].values(), /is empty as JSON/],
    ["a Map", { map: new Map() }, /"map" is a Map/],
    ["an error", new Error("no"), /should have been thrown/],
    ["a promise", [Promise.resolve(1)], /not awaited/],
    ["100,000 levels", deep, /too deeply/],
    [
      "a toJSON that throws",
      {
        toJSON() {
          throw new Error("not today");
        },
      },
      /not today/,
    ],
  ])("%s is reported as an error of the result, after the tool ran", (_name, value, message) => {
    const rendered = renderOutput(value);
    expect(rendered.error).toBe("unreadable");
    expect(rendered.text).toMatch(message);
    expect(rendered.text).toContain("The tool ran");
  });
});

/** A generous bound: such a value takes a fraction of it. Without it rendering takes minutes or all memory. */
function renderInTime(value: unknown) {
  const startedAt = performance.now();
  const rendered = renderOutput(value);
  expect(performance.now() - startedAt).toBeLessThan(20_000);
  return rendered;
}

describe("a huge result is rendered or refused, and never blocks the event loop for long (S12)", () => {
  test("100 MB of text, alone or in an object, are kept completely for the artifact", () => {
    const text = "a".repeat(100_000_000);
    expect(renderInTime(text).text).toHaveLength(100_000_000);
    expect(renderInTime({ text }).text).toHaveLength(100_000_011);
    expect(excerptOf(text, 32_000, "artifact-7").length).toBeLessThanOrEqual(32_000);
  });

  test.each<[string, () => unknown, RegExp]>([
    ["too many values", () => Array(10_000_001).fill(0), /more than 10000000 values/],
    ["too many values as parts", () => Array(1_001).fill(Array(10_000).fill(0)), /more than 10000000 values/],
    ["a list of four billion holes", () => ({ holes: Array(4_000_000_000) }), /more than 10000000 values/],
    ["a Buffer of 100 MB", () => Buffer.alloc(100_000_000), /it is binary data.*type: "file", data/],
    ["a Buffer of 100 MB inside", () => [{ file: Buffer.alloc(100_000_000) }], /it holds binary data/],
    ["a typed array of 100 MB", () => ({ file: new Uint8Array(100_000_000) }), /it holds binary data/],
    ["an ArrayBuffer", () => ({ file: new ArrayBuffer(8) }), /"file" is binary data/],
  ])("%s", (_name, make, message) => {
    const rendered = renderInTime(make());
    expect(rendered.error).toBe("unreadable");
    expect(rendered.text).toMatch(message);
  });

  test("the reason for a missing text is short, also one from the value's own code", () => {
    const value = {
      toJSON() {
        throw new Error("x".repeat(1_000_000));
      },
    };
    expect(renderOutput(value).text.length).toBeLessThan(1_000);
    expect(renderOutput({ ["k".repeat(1_000_000)]: 1n }).text.length).toBeLessThan(1_000);
  });
});

describe("an excerpt", () => {
  test("a text that fits is unchanged", () => {
    expect(excerptOf("abc", 3, "a-1")).toBe("abc");
  });

  test("head and tail are kept, and a sentence names the omitted size and the location of the whole", () => {
    const text = `START${"x".repeat(10_000)}END`;
    const excerpt = excerptOf(text, 500, "artifact-7");
    expect(excerpt.startsWith("START")).toBe(true);
    expect(excerpt.endsWith("END")).toBe(true);
    expect(excerpt.length).toBeLessThanOrEqual(500);
    const [, cut, whole] = /\[(\d+) of (\d+) characters were cut.*artifact artifact-7\.\]/.exec(excerpt) ?? [];
    expect(Number(whole)).toBe(text.length);
    const kept = excerpt.replace(/\n\n\[.*\]\n\n/s, "").length;
    expect(kept + Number(cut)).toBe(text.length);
  });

  test("a limit smaller than the sentence gives only the sentence", () => {
    expect(excerptOf("x".repeat(100), 10, "a-1").trim()).toMatch(/^\[100 of 100 characters were cut.*a-1\.\]$/);
  });

  test("surrogate pairs stay whole at every limit", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom("😀", "a"), minLength: 300, maxLength: 600 }),
        fc.nat(600),
        (text, limit) => {
          const excerpt = excerptOf(text, limit, "a-1");
          expect(excerpt.isWellFormed()).toBe(true);
          expect(excerpt.length).toBeLessThanOrEqual(Math.max(limit, 150));
        },
      ),
    );
  });
});
