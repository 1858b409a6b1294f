import { assert, jsonValue, property } from "fast-check";
import { describe, expect, it } from "vitest";
import { parseJson, stableStringify } from "../../src/base/index.ts";
import { InvalidInputError } from "../../src/errors/index.ts";

const nested = (depth: number) => "[".repeat(depth) + "]".repeat(depth);

describe("parseJson", () => {
  it("parses what JSON.parse parses", () => {
    // Texts with a key that it refuses are covered by the next tests.
    const harmless = jsonValue().filter((value) => !/__proto__|constructor|prototype/.test(JSON.stringify(value)));
    assert(
      property(harmless, (value) => {
        const text = JSON.stringify(value);
        expect(parseJson(text)).toEqual(JSON.parse(text));
      }),
      { seed: 20_261_121 },
    );
  });

  it.each(["__proto__", "constructor", "prototype"])("refuses the key %s, even with escapes", (key) => {
    const escaped = `\\u${key.charCodeAt(0).toString(16).padStart(4, "0")}${key.slice(1)}`;
    for (const name of [key, escaped]) {
      expect(() => parseJson(`{"a":[0,{"b":{"${name}":1}}]}`, { what: "the body" })).toThrow(
        `the body has the key "${key}" at $.a[1].b; this key is not permitted`,
      );
    }
    expect(parseJson(`{"a":"${key}"}`)).toEqual({ a: key });
  });

  it("accepts depth 200 and refuses 201 and deeper", () => {
    expect(() => parseJson(nested(200))).not.toThrow();
    expect(() => parseJson(nested(201))).toThrow("nested deeper than the permitted 200 levels");
    expect(() => parseJson(nested(1_000_000))).toThrow(InvalidInputError);
    expect(() => parseJson('{"a":'.repeat(3) + "1" + "}".repeat(3), { maxDepth: 2 })).toThrow(InvalidInputError);
  });

  it("counts bytes, not characters", () => {
    expect(parseJson('"éé"', { maxBytes: 6 })).toBe("éé");
    expect(() => parseJson('"éé"', { maxBytes: 5 })).toThrow("larger than the permitted 5 bytes");
    expect(() => parseJson('"abcdef"', { maxBytes: 5 })).toThrow(InvalidInputError);
  });

  it("reports the position of a syntax error, never the content", () => {
    const error = catchError(() => parseJson('{"key": secret-token}', { what: "the request body" }));
    expect(error).toBeInstanceOf(InvalidInputError);
    expect(String(error)).toContain("the request body is not valid JSON");
    expect(`${String(error)} ${String((error as Error).cause)}`).not.toContain("secret");
  });
});

describe("stableStringify", () => {
  it("is the same text for equal values, however they were built, and JSON that parses back", () => {
    const one = stableStringify({ b: 1, a: { d: [1, "x", null], c: true } });
    expect(one).toBe('{"a":{"c":true,"d":[1,"x",null]},"b":1}');
    expect(stableStringify({ a: { c: true, d: [1, "x", null], e: undefined }, b: 1 })).toBe(one);
    assert(
      property(jsonValue(), (value) => {
        const plain: unknown = JSON.parse(JSON.stringify(value));
        expect(JSON.parse(stableStringify(plain))).toEqual(plain);
      }),
    );
  });

  it("refuses values that JSON would silently lose", () => {
    const cycle: { self?: unknown } = {};
    cycle.self = cycle;
    for (const value of [undefined, [undefined], Number.NaN, 1n, () => 1, new Date(0), new Map(), cycle]) {
      expect(() => stableStringify(value)).toThrow(InvalidInputError);
    }
  });
});

function catchError(run: () => unknown): unknown {
  try {
    run();
  } catch (error) {
    return error;
  }
  throw new Error("expected an error");
}
