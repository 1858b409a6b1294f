// The table of docs/runtimes.md says what the check of runtimes says, about the versions that CI checks.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { repositoryRoot } from "../../scripts/run-command.ts";
import { checks } from "../../scripts/runtimes/checks.ts";

const page = readFileSync(join(repositoryRoot, "docs", "runtimes.md"), "utf8");
const workflow = readFileSync(join(repositoryRoot, ".github", "workflows", "ci.yml"), "utf8");
const [head = "", , ...rest] = page.slice(page.indexOf("| Checked |")).split("\n");
const cellsOf = (line: string): string[] => line.split(" | ").map((cell) => cell.replace(/^\| | \|$/g, ""));
const rows = rest.slice(0, rest.indexOf("")).map(cellsOf);
const [, oldest = "", , bun = "", deno = ""] = cellsOf(head);

test("has a row for each check", () => {
  expect(rows.map(([title]) => title)).toEqual(checks.map(({ title }) => title));
});

test("names the versions that CI checks", () => {
  for (const [name, version] of [oldest, bun, deno].map((cell) => cell.toLowerCase().split(" "))) {
    expect(workflow).toContain(`package: ${name}@${version},`);
  }
});

const shown = (cell = ""): string => (cell === "works" || cell === "–" ? cell : "lacks");

describe.each(checks)("$title", ({ title, on, fails }) => {
  const [, node22, node24, ...others] = rows.find(([name]) => name === title) ?? [];

  test("says “works” exactly where the check has to pass", () => {
    const expected = (name: "node" | "bun" | "deno"): string => {
      if (on?.includes(name) === false) return "–";
      return fails?.[name] === undefined ? "works" : "lacks";
    };
    expect(shown(node22)).toBe(expected("node"));
    expect(shown(node24)).toBe(on?.includes("node") === false ? "–" : "works");
    expect(others.map(shown)).toEqual([expected("bun"), expected("deno")]);
  });
});
