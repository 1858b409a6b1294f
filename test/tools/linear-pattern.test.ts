import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createLinearPattern, createStepLimit } from "../../src/tools/linear-pattern.ts";
import { amount } from "../support/full.ts";

function matches(pattern: string, text: string): boolean {
  const limit = createStepLimit();
  limit.reset(100_000_000);
  return createLinearPattern(pattern, limit).test(text);
}

const atom = fc.oneof(
  fc.constantFrom(
    "a",
    "b",
    "c",
    ".",
    "\\d",
    "\\w",
    "\\W",
    "[ab]",
    "[^a]",
    "[\\]b-c]",
    "\\.",
    "\\u0061",
    "\\u{1F600}",
    "😀",
  ),
  fc.constantFrom("\\b", "\\B", "^", "$", "\\p{L}", "[]", "[^]", "\\n", "\\x62", "(?:)"),
);
const quantified = (inner: fc.Arbitrary<string>) =>
  fc
    .tuple(inner, fc.constantFrom("", "", "", "*", "+", "?", "*?", "{2}", "{0,2}", "{1,}", "{0}"))
    .map(([part, sign]) => (/^(\^|\$|\\[bB]|\(\?[=!].*)$/s.test(part) ? part : part + sign));
const { pattern } = fc.letrec<{ pattern: string; group: string }>((tie) => ({
  pattern: fc
    .array(fc.array(quantified(fc.oneof({ maxDepth: 3 }, atom, tie("group"))), { maxLength: 4 }), {
      minLength: 1,
      maxLength: 3,
    })
    .map((branches) => branches.map((parts) => parts.join("")).join("|")),
  group: fc
    .tuple(fc.constantFrom("(", "(?:", "(?=", "(?!", "(?<n>"), tie("pattern"))
    .filter(([start, inner]) => start !== "(?<n>" || !inner.includes("(?<n>"))
    .map(([start, inner]) => `${start}${inner})`),
}));
const text = fc.string({ unit: fc.constantFrom("a", "b", "c", "1", ".", "😀", "]", "\n", " "), maxLength: 8 });

test("it answers as the engine's own expressions do", () => {
  let compared = 0;
  fc.assert(
    fc.property(pattern, fc.array(text, { minLength: 1, maxLength: 5 }), (source, texts) => {
      let native: RegExp;
      try {
        native = new RegExp(source, "u");
      } catch {
        return;
      }
      // The engine tries empty matches between the halves of a surrogate pair, against its own standard.
      const canBeEmpty = /\(\?[=!]|\\b/i.test(source);
      for (const text of texts) {
        const subject = canBeEmpty ? text.replaceAll("😀", "") : text;
        compared += 1;
        expect([source, subject, matches(source, subject)]).toEqual([source, subject, native.test(subject)]);
      }
    }),
    { numRuns: amount(3_000, 500) },
  );
  expect(compared).toBeGreaterThan(amount(3_000, 300));
});

test.each([
  ["^[a-z0-9]+(?:-[a-z0-9]+)*$", "a-slug-of-2026", "a--b"],
  ["^(\\([0-9]{3}\\))?[0-9]{3}-[0-9]{4}$", "(888)555-1212", "(888)FOO-1212"],
  [
    "^(?!\\.)(?!.*\\.\\.)([A-Za-z0-9_'+\\-\\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\\-]*\\.)+[A-Za-z]{2,}$",
    "a.b@c.org",
    "a..b@c.org",
  ],
  ["^(?=.{1,20}\\.?$)[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\\.[a-z]+)*$", "example.org", "example-.org"],
  ["^\\p{Lu}\\p{Ll}+$", "Ärger", "ärger"],
])("%s, as people write them", (source, good, bad) => {
  expect([matches(source, good), matches(source, bad)]).toEqual([true, false]);
});

test.each([
  ["(?i)^error: [a-z]+$", "ERROR: Disk", "ERROR: 7"],
  ["(?s)^a.b$", "a\nb", "a\n\nb"],
  ["(?m)^b$", "a\nb\nc", "a\nbc"],
  ["^(?i:ab)c$", "ABc", "ABC"],
  ["^(?P<name>a)b$", "ab", "b"],
])("%s, as other languages write it", (source, good, bad) => {
  expect([matches(source, good), matches(source, bad)]).toEqual([true, false]);
});

test.each([
  ["^[\\w-.]+@x$", "a-b.c@x", "a b@x"],
  ["^\\#\\-\\_$", "#-_", "#"],
  ["^a{$", "a{", "a"],
  ["^{id}]$", "{id}]", "id"],
  ["^[^\\w-.]$", "🦊", "w"],
  ["^\\-.{2}$", "-🦊🦊", "-🦊"],
])("%s, which holds only without the u flag", (source, good, bad) => {
  expect([matches(source, good), matches(source, bad)]).toEqual([true, false]);
});

describe("what it does not take", () => {
  test.each([
    ["(a)\\1", /refers back/],
    ["(?<n>a)\\k<n>", /refers back/],
    ["(?<=a)b", /looks behind/],
    ["(?<!a)b", /looks behind/],
    ["(?-i:a)", /takes flags away/],
    ["a(?i)b", /Invalid group/],
    ["a++", /Nothing to repeat/],
    ["\\Aa", /\\A means nothing here/],
    ["(a", /Unterminated group/],
    ["a{100000}", /more than 1000 times/],
    ["((a{100}){100}){100}", /too large/],
    ["(((){1000}){1000}){1000}", /too large/],
    ["(".repeat(200) + ")".repeat(200), /nests more than 100/],
    ["a".repeat(5_001), /longer than 5000/],
  ])("%s", (source, message) => {
    expect(() => createLinearPattern(source, createStepLimit())).toThrow(message);
  });
});

test.each([
  ["^(a+)+$", `${"a".repeat(20_000)}!`],
  ["(x+x+)+y", "x".repeat(20_000)],
  ["^(a|a)*$", `${"a".repeat(20_000)}!`],
  ["a*a*a*a*a*a*b", "a".repeat(20_000)],
  ["^(?=.*b)(?=.*c).*$", "a".repeat(20_000)],
])("%s costs in proportion to the text (S11)", (source, subject) => {
  const limit = createStepLimit();
  limit.reset(subject.length * 40);
  expect(createLinearPattern(source, limit).test(subject)).toBe(false);
});

test("lookaheads that add up are cut off", () => {
  const limit = createStepLimit();
  limit.reset();
  expect(() => createLinearPattern("(?:(?=.*b)a)*c", limit).test("a".repeat(50_000))).toThrow("too many steps");
});
