// Decision records have one form: a limited number, one page each, a title that is the decision, and a complete index.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { repositoryRoot } from "../../scripts/run-command.ts";

const MOST_RECORDS = 20;
/** One printed page. */
const MOST_LINES = 60;
const MOST_WORDS = 700;

const folder = join(repositoryRoot, "docs", "decisions");
const index = "README.md";
const records = readdirSync(folder).filter((name) => name !== index);
const titled = records.map((name) => {
  const text = readFileSync(join(folder, name), "utf8");
  return { name, text, title: /^# (.+)\n/.exec(text)?.[1] ?? "" };
});

test(`there are at most ${MOST_RECORDS}, each with a unique number and a name that states the decision`, () => {
  expect(records.length).toBeLessThanOrEqual(MOST_RECORDS);
  expect(records.filter((name) => !/^\d{4}-[a-z0-9]+(?:-[a-z0-9]+)*\.md$/.test(name))).toEqual([]);
  expect(new Set(records.map((name) => name.slice(0, 4))).size).toBe(records.length);
});

test("the index lists each of them with its title, in order", () => {
  const listed = [...readFileSync(join(folder, index), "utf8").matchAll(/^- \[(.+)\]\((.+)\)$/gm)];
  expect(listed.map(([, title, name]) => ({ title, name }))).toEqual(
    titled.map(({ title, name }) => ({ title, name })),
  );
});

describe.each(titled)("$name", ({ text, title }) => {
  test("has a title, context, decision and consequences, in this order", () => {
    expect(title).not.toBe("");
    const headings = [...text.matchAll(/^#+ .+$/gm)]
      .map(([heading]) => heading)
      .filter((it) => it !== "## Alternatives");
    expect(headings).toEqual([`# ${title}`, "## Context", "## Decision", "## Consequences"]);
  });

  test("is one page", () => {
    expect(text.split("\n").length).toBeLessThanOrEqual(MOST_LINES);
    expect(text.split(/\s+/).length).toBeLessThanOrEqual(MOST_WORDS);
  });

  test("contains only paths that exist", () => {
    const paths = [...text.matchAll(/`((?:src|test|scripts|docs|bench)\/[^`*\s]+)`/g)].map(([, path = ""]) => path);
    expect(paths.filter((path) => !existsSync(join(repositoryRoot, path)))).toEqual([]);
  });
});
