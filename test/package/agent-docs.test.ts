// The files for coding agents follow the documentation, and the skill can be loaded.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { agentFiles, fullText } from "../../scripts/agent-docs.ts";
import { repositoryRoot } from "../../scripts/run-command.ts";
import { skills } from "../../src/kit/index.ts";
import { blocksOf } from "../support/document-blocks.ts";

const files = agentFiles();

test.each(Object.entries(files))("%s is up to date; else run npm run build:agent-docs", (path, text) => {
  expect(readFileSync(join(repositoryRoot, path), "utf8")).toBe(text);
});

test("llms.txt has a title, a quotation and sections of links to pages, each with a line on it", () => {
  const [title, , quotation, , ...rest] = (files["llms.txt"] ?? "").split("\n");
  expect(title).toBe("# troupe");
  expect(quotation).toMatch(/^> \S/);
  const links = rest.flatMap((line) => /^- \[[^\]]+\]\(([^)]+)\): \S.*[^:]$/.exec(line)?.[1] ?? []);
  expect(rest.filter((line) => line !== "" && !/^(?:## \S|- \[[^\]]+\]\([^)]+\): \S)/.test(line))).toEqual([]);
  expect(links).toContain("docs/tools.md");
  expect(links.filter((path) => !existsSync(join(repositoryRoot, path)))).toEqual([]);
  expect(links.filter((path) => !fullText().includes(`<!-- ${path} -->`))).toEqual([]);
});

test("a line on a page is a sentence about it", () => {
  const lines = (files["llms.txt"] ?? "").split("\n").filter((line) => line.startsWith("- "));
  const weak = lines.filter((line) => (/\): (.*)$/.exec(line)?.[1] ?? "").split(" ").length < 5);
  expect(weak).toEqual([]);
});

test("the programs of the guide are programs of pages, where they are run", () => {
  const pages = ["README.md", ...readdirSync(join(repositoryRoot, "docs")).map((name) => `docs/${name}`)].filter(
    (path) => path.endsWith(".md"),
  );
  const run = pages
    .flatMap((path) => blocksOf(path, readFileSync(join(repositoryRoot, path), "utf8")))
    .filter(({ language, flags }) => language === "ts" && flags.length === 0);
  const programs = blocksOf("AGENTS.md", files["AGENTS.md"] ?? "");
  expect(programs.length).toBeGreaterThan(2);
  expect(programs.filter(({ text }) => !run.some((block) => block.text === text))).toEqual([]);
});

test("the guide names files that exist", () => {
  const paths = [...(files["AGENTS.md"] ?? "").matchAll(/`node_modules\/troupe\/([^`]+)`/g)].map(
    ([, path = ""]) => path,
  );
  expect(paths).toContain("docs/budgets.md");
  expect(paths.filter((path) => !existsSync(join(repositoryRoot, path)))).toEqual([]);
});

test("the skill is offered by skills()", async () => {
  const { instructions } = await skills(join(repositoryRoot, "skills"));
  expect(instructions).toContain("- troupe: Writes, changes and tests TypeScript programs");
});
