import { expect, test } from "vitest";
import { blocksOf, tagFault } from "./document-blocks.ts";
import { commandsOf } from "./shell-commands.ts";

const document = "docs/guide.md";
const scripts = new Set(["start", "test", "verify"]);

function shellBlock(text: string): Parameters<typeof commandsOf>[0] {
  return { document, line: 10, language: "sh", flags: [], text };
}

function faultOf(fence: string): string | undefined {
  return blocksOf(document, `\n${fence}\n\`\`\``).map(tagFault)[0];
}

test("finds fenced blocks with their lines, languages and flags", () => {
  const markdown = [
    "# Title",
    "```ts no-run",
    "const a = 1;",
    "",
    "```",
    "- item",
    "  ````sh",
    "  echo ```",
    "  ````",
  ].join("\n");
  expect(blocksOf(document, markdown)).toEqual([
    { document, line: 2, language: "ts", flags: ["no-run"], text: "const a = 1;\n" },
    { document, line: 7, language: "sh", flags: [], text: "echo ```" },
  ]);
});

test("a tag that would bypass the checks is a fault", () => {
  expect(["```ts", "```sh no-run", "```json", "```text"].map(faultOf)).toEqual([
    undefined,
    undefined,
    undefined,
    undefined,
  ]);
  expect(faultOf("```typescript")).toBe(`docs/guide.md:2: tag this block as ts; "typescript" is not checked`);
  expect(faultOf("```")).toMatch(/^docs\/guide\.md:2: tag this block as text/);
  expect(faultOf("```ts norun")).toBe("docs/guide.md:2: unknown words after ts: norun; known: no-run, theirs");
});

test("distinguishes commands that run from those that only have to exist", () => {
  const text = [
    "# first",
    "npm ci",
    "KEY=1 npm start -- \\",
    '  "why?"  # asks',
    "",
    "npm test",
    "npm start hello",
    "npm run verify",
    "npx troupe list --limit 5  # where it is installed",
  ];
  expect(commandsOf(shellBlock(text.join("\n")), scripts).map(({ kind, line }) => [kind, line])).toEqual([
    ["known", 12],
    ["run", 13],
    ["known", 16],
    ["run", 17],
    ["known", 18],
    ["installed", 19],
  ]);
});

test("refuses commands that it cannot check", () => {
  const text = ["npm run bench", "docker run x", "npm ci && npm start", "npm test && npm start"].join("\n");
  expect(commandsOf(shellBlock(text), scripts)).toEqual([
    expect.objectContaining({ kind: "unknown", line: 11, reason: `package.json has no script "bench"` }),
    expect.objectContaining({
      kind: "unknown",
      line: 12,
      reason: "only npm, echo, printf and cat are run",
    }),
    expect.objectContaining({ kind: "unknown", line: 13, reason: "show it alone" }),
    expect.objectContaining({ kind: "unknown", line: 14, reason: "show it alone, one command a line" }),
  ]);
});
