import { array, assert, constantFrom, lorem, oneof, property, string } from "fast-check";
import { describe, expect, test } from "vitest";
import { keywordsOf } from "../../src/demo/keywords.ts";
import { type NumberedLine, passagesOf } from "../../src/demo/passages.ts";
import { filesIn, findingsIn, readTextIn } from "../../src/demo/reading.ts";
import { stemOf } from "../../src/model/index.ts";
import { countRequestTokens, countTokens, promptBytes } from "../../src/model/offline-model.ts";
import { amount } from "../support/full.ts";

function numbered(text: string): NumberedLine[] {
  return text.split("\n").map((line, index) => ({ line: index + 1, text: line }));
}

function bare(text: string): string {
  return text.replaceAll(/<[^<>]*>|[\s>]/gu, "");
}

function followUp(question: string): string[] {
  return keywordsOf(question, "How much does a lorry cost?").words.map((word) => word.text);
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
  ])("%s are one word", (forms) => {
    expect(new Set(forms.split(" ").map(stemOf)).size).toBe(1);
  });

  test.each([
    ["state", "station"],
    ["test", "text"],
    ["class", "clause"],
    ["string", "strong"],
  ])("%s and %s are two", (first, second) => {
    expect(stemOf(first)).not.toBe(stemOf(second));
  });

  test("keeps identifiers whole and drops words without a subject", () => {
    const { words } = keywordsOf("How does `maxTokens` limit what an agent may spend in z.infer calls?");
    expect(words.map((word) => word.text)).toEqual(["maxTokens", "limit", "agent", "spend", "z.infer", "calls"]);
  });

  test("a short follow-up takes over the words of the question before", () => {
    expect(followUp("And a van?")).toEqual(["van", "lorry", "cost"]);
    expect(followUp("Where do herons nest?")).toEqual(["herons", "nest"]);
  });

  test("tells apart the questions in a question", () => {
    expect(
      keywordsOf("What does it cost, and who is the treasurer?").parts.map((part) =>
        part.words.map((word) => word.text),
      ),
    ).toEqual([["cost"], ["treasurer"]]);
    expect(keywordsOf("How do cats and dogs differ?").parts).toEqual([]);
  });
});

describe("passages", () => {
  test("each sentence keeps the line in which it begins", () => {
    const passages = passagesOf(
      numbered(
        "# Title\n\nOne begins here and\ngoes on. Two begins in\nthe middle, e.g. Here, of a line! Three\n> quoted",
      ),
    );
    expect(passages.map(({ line, text, kind }) => [line, text, kind])).toEqual([
      [1, "Title", "heading"],
      [3, "One begins here and goes on.", "prose"],
      [4, "Two begins in the middle, e.g. Here, of a line!", "prose"],
      [5, "Three quoted", "prose"],
    ]);
  });

  test("knows items, tables, code, headings of both kinds, and what is mere markup", () => {
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
      passagesOf(numbered(text)).map(({ line, text: found, kind, headings }) => [
        line,
        found,
        kind,
        headings.join(">"),
      ]),
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

  test("a sentence may begin with a small name, but an abbreviation ends none", () => {
    const lines = numbered(
      "It costs approx. five euros, incl. tax. It is money. troupe counts it, e.g. here. No. 5 is J. Smith.",
    );
    expect(passagesOf(lines).map((passage) => passage.text)).toEqual([
      "It costs approx. five euros, incl. tax.",
      "It is money.",
      "troupe counts it, e.g. here.",
      "No. 5 is J. Smith.",
    ]);
  });

  test("marks what may be a fragment because the lines around it were not given", () => {
    const lines = numbered("A long sentence\nthat ends here. A whole one.\nAnd one that is\ncut off");
    const cut = passagesOf(lines.slice(1, 3)).map(({ text, mayBeCut }) => [text, mayBeCut]);
    expect(cut).toEqual([
      ["that ends here.", true],
      ["A whole one.", false],
      ["And one that is", true],
    ]);
  });

  test("lines from inside a code block are taken for code, not for prose", () => {
    const lines = numbered("```sh\nfirst\nsecond\n```\nProse after it.\n```ts\nlet x = 1;\n```");
    expect(passagesOf(lines.slice(1)).map((passage) => passage.kind)).toEqual(["code", "code", "prose", "code"]);
  });

  test("every passage of any text stands at its line", () => {
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
        for (const passage of passagesOf(numbered(lines.join("\n")))) {
          const first = passage.text.split(" ")[0] ?? "";
          expect(bare(lines[passage.line - 1] ?? "")).toContain(bare(first));
        }
      }),
      { numRuns: amount(300, 50) },
    );
  });

  test("takes a hostile text in its stride", () => {
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
      passagesOf(numbered(text));
      passagesOf(numbered(text.replaceAll(" ", "\n")));
    }
    expect(performance.now() - started).toBeLessThan(45_000);
  });
});

describe("results of tools", () => {
  test("findings are lines with a place; headings above them may follow", () => {
    const text =
      "3 of 9 passages, best first.\ndocs/a.md:12: It costs 3: no more. [under: Fees > Half]\n- b c.md:7: Yes [see below]\nno: finding";
    expect(findingsIn(text)).toEqual([
      { path: "docs/a.md", line: 12, text: "It costs 3: no more.", headings: ["Fees", "Half"] },
      { path: "b c.md", line: 7, text: "Yes [see below]", headings: [] },
    ]);
  });

  test.each([
    ["a.md  1.2 kB, 30 lines  # Alpha\ndocs/b.txt\n\nThere are more.", ["a.md", "docs/b.txt"]],
    ["- my notes.md\n- src/index.ts (12 lines)", ["my notes.md", "src/index.ts"]],
    ['["a.md","b.md"]', ["a.md", "b.md"]],
    ['[{"path":"a.md","size":3},{"name":"b.md"}]', ["a.md", "b.md"]],
  ])("files of a listing %#", (text, paths) => {
    expect(filesIn(text).map((file) => file.path)).toEqual(paths);
  });

  test.each([
    ["a.md, lines 4-5 of 9\n4: four\n5: five"],
    ["4\tfour\n5\tfive"],
    ["  4 | four\n  5 | five"],
    ["four\nfive"],
  ])("lines of a read %#", (text) => {
    expect(readTextIn(text, 4).lines).toEqual([
      { line: 4, text: "four" },
      { line: 5, text: "five" },
    ]);
  });
});

test("tokens are never more than bytes, the bound of a prompt never less than its count", () => {
  assert(
    property(string({ unit: "binary", maxLength: 200 }), string({ maxLength: 50 }), (first, second) => {
      expect(countTokens(first)).toBeLessThanOrEqual(Buffer.byteLength(first));
      const request = {
        messages: [{ id: "1", createdAt: 0, role: "user" as const, origin: "user", content: first }],
        tools: [{ name: "t", description: second, parameters: { type: "object", title: second } }],
      };
      expect(countRequestTokens(request)).toBeLessThanOrEqual(promptBytes(request));
    }),
  );
  expect(countTokens("The quick brown fox jumps over the lazy dog.")).toBe(10);
});
