import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { oneLine, printable } from "../../../src/cli/view/terminal-text.ts";
import { padEnd, padStart, truncate, widthOf, wrap } from "../../../src/cli/view/text-width.ts";

describe("the width of text in a terminal", () => {
  test.each([
    ["plain", 5],
    ["日本語", 6],
    ["한국", 4],
    ["e\u0301", 1],
    ["👩‍👩‍👧", 2],
    ["✅ ok", 5],
    ["├─ x", 4],
    ["…", 1],
    ["", 0],
  ])("%j takes %i columns", (text, width) => {
    expect(widthOf(text)).toBe(width);
  });

  test("a wide character that would exceed the width is left out", () => {
    expect(truncate("日本語", 4)).toBe("日…");
    expect(truncate("日本語", 6)).toBe("日本語");
    expect(truncate("abc", 0)).toBe("");
  });

  test("cut text always fits, and text that fits is not cut", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), fc.integer({ min: 0, max: 30 }), (raw, columns) => {
        const text = oneLine(raw);
        const cut = truncate(text, columns);
        expect(widthOf(cut)).toBeLessThanOrEqual(columns);
        expect(cut === text).toBe(widthOf(text) <= columns);
      }),
    );
  });

  test("padding counts columns, not characters", () => {
    expect(`${padEnd("日本", 6)}|${padStart("7", 3)}|`).toBe("日本  |  7|");
  });

  test("wraps at spaces, and words longer than a line anywhere", () => {
    expect(wrap("one two three\nfour", 8)).toEqual(["one two", "three", "four"]);
    expect(wrap("abcdefghij kl", 4)).toEqual(["abcd", "efgh", "ij", "kl"]);
    expect(wrap("", 4)).toEqual([""]);
  });

  test("wrapped lines fit and keep every letter", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), fc.integer({ min: 2, max: 30 }), (raw, columns) => {
        const text = oneLine(raw);
        const lines = wrap(text, columns);
        for (const line of lines) expect(widthOf(line)).toBeLessThanOrEqual(columns);
        expect(lines.join("").replaceAll(/\s/gu, "")).toBe(text.normalize().replaceAll(/\s/gu, ""));
      }),
    );
  });

  test("foreign text cannot control the terminal", () => {
    expect(printable("a\u001B[2Jb\u001B]0;title\u0007c\rd\te\nf\u202Eg\u009B1m")).toMatch(/^[a-z0;  \n[\]]+$/);
    expect(printable("one\r\ntwo\n")).toBe("one\ntwo\n");
    expect(oneLine("  one\n\ttwo ")).toBe("one two");
  });
});
