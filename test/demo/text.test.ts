import { array, assert, constantFrom, lorem, oneof, property, string } from "fast-check";
import { describe, expect, test } from "vitest";
import { type Passage, passagesOf, termsOf } from "../../src/model/index.ts";
import { stemOf } from "../../src/model/offline-search.ts";
import { amount } from "../support/full.ts";

function passagesIn(text: string): Passage[] {
  return passagesOf("a.md", text.split("\n"));
}

function bare(text: string): string {
  return text.replaceAll(/<[^<>]*>|[\s>]/gu, "");
}

describe("words", () => {
  test.each([
    ["reserve reserves reserved reserving reservation reservations"],
    ["run runs running ran"],
    ["stop stops stopped stopping"],
    ["study studies studied studying"],
    ["spend spends spent spending"],
    ["validate validates validated validation"],
    ["configure configured configuration"],
    ["durable durably durability"],
    ["child children"],
    ["match matches matched matching"],
    ["create created creation"],
    ["approve approves approved approving approval approvals"],
    ["refund refunds refunded refunding"],
    ["deploy deploys deployed deployment deployments"],
    ["policy policies"],
    ["use uses used using"],
    ["die dies died dying"],
  ])("%s count as one word", (forms) => {
    expect(new Set(forms.split(" ").map(stemOf)).size).toBe(1);
  });

  test.each([
    ["state", "station"],
    ["test", "text"],
    ["class", "clause"],
    ["string", "strong"],
  ])("%s and %s count as two", (first, second) => {
    expect(stemOf(first)).not.toBe(stemOf(second));
  });

  test("drops function words, and keeps identifiers whole", () => {
    const terms = termsOf("How does `maxTokens` limit what an agent may spend in z.infer calls?");
    expect([...terms.values()]).toEqual(["maxTokens", "limit", "agent", "spend", "z.infer", "calls"]);
  });
});

describe("passages", () => {
  test("each sentence has the line in which it begins", () => {
    const passages = passagesIn(
      "# Title\n\nOne begins here and\ngoes on. Two begins in\nthe middle, e.g. Here, of a line! Three\n> quoted",
    );
    expect(passages.map(({ line, text, kind }) => [line, text, kind])).toEqual([
      [1, "Title", "heading"],
      [3, "One begins here and goes on.", "prose"],
      [4, "Two begins in the middle, e.g. Here, of a line!", "prose"],
      [5, "Three quoted", "prose"],
    ]);
  });

  test("recognizes items, tables, code, headings of both kinds, and pure markup", () => {
    const text = [
      "Big",
      "===",
      "- [Contents](#contents)",
      "[![badge](a.svg)](b)",
      "<!-- a comment",
      "over lines -->",
      "1. First item. It goes",
      "   on.",
      "| Name | Value |",
      "|------|-------|",
      "| one  | 1     |",
      "```ts",
      "const answer = 42;",
      "# no heading",
      "```",
      "Small",
      "---",
      "Text after.",
      "[ref]: https://example.org",
    ].join("\n");
    expect(
      passagesIn(text).map(({ line, text: found, kind, headings }) => [line, found, kind, headings.join(">")]),
    ).toEqual([
      [1, "Big", "heading", ""],
      [7, "First item.", "item", "Big"],
      [7, "It goes on.", "item", "Big"],
      [11, "one | 1", "row", "Big>Name | Value"],
      [13, "const answer = 42;", "code", "Big"],
      [14, "# no heading", "code", "Big"],
      [16, "Small", "heading", "Big"],
      [18, "Text after.", "prose", "Big>Small"],
    ]);
  });

  test("items, rows and code belong to the sentence with a colon before them", () => {
    const text =
      "# Fees\n\nTo pay:\n\n1. Ask for a form.\n2. Send it.\n\nInstall it with:\n```\nnpm i\n```\nThen wait.\n- Last";
    expect(passagesIn(text).map((passage) => [passage.text, passage.headings.join(">")])).toEqual([
      ["Fees", ""],
      ["To pay:", "Fees"],
      ["Ask for a form.", "Fees>To pay:"],
      ["Send it.", "Fees>To pay:"],
      ["Install it with:", "Fees"],
      ["npm i", "Fees>Install it with:"],
      ["Then wait.", "Fees"],
      ["Last", "Fees"],
    ]);
  });

  test("an abbreviation does not end a sentence", () => {
    const text = "It costs approx. five euros, incl. tax. It is money. troupe counts it, e.g. here. No. 5 is J. Smith.";
    expect(passagesIn(text).map((passage) => passage.text)).toEqual([
      "It costs approx. five euros, incl. tax.",
      "It is money. troupe counts it, e.g. here.",
      "No. 5 is J. Smith.",
    ]);
  });

  test("every passage of any text is at its line", () => {
    const line = oneof(
      constantFrom(
        "",
        "# Head",
        "```",
        "```ts",
        "| a | b |",
        "|---|---|",
        "- item one. Item two",
        "> quote",
        "---",
        "<b>bold</b> text",
        "Two. Sentences here.",
      ),
      string({ maxLength: 60 }),
      lorem({ maxCount: 12 }),
    );
    assert(
      property(array(line, { maxLength: 30 }), (given) => {
        const lines = given.map((text) => text.replaceAll(/[\r\n]/g, " "));
        for (const passage of passagesIn(lines.join("\n"))) {
          const first = passage.text.split(" ")[0] ?? "";
          expect(bare(lines[passage.line - 1] ?? "")).toContain(bare(first));
        }
      }),
      { numRuns: amount(300, 50) },
    );
  });

  test("handles a hostile text", () => {
    const started = performance.now();
    const times = amount(500_000, 100_000);
    for (const text of [
      "![".repeat(times),
      "`".repeat(times),
      ". ".repeat(times),
      "<a".repeat(times),
      `#${" ".repeat(times)}x`,
      "A b. ".repeat(times / 2.5),
    ]) {
      passagesIn(text);
      passagesIn(text.replaceAll(" ", "\n"));
    }
    expect(performance.now() - started).toBeLessThan(45_000);
  });
});
