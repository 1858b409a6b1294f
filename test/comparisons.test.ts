// The pages in docs/coming-from show code of other libraries and what troupe has in its place. test/readme.test.ts runs ours; theirs
// are compiled here where the packages are installed, which `npm run check:comparisons` does.
import { existsSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { describe, expect, test } from "vitest";
import { comparisons, faultOf } from "../scripts/check-comparisons.ts";
import { repositoryRoot } from "../scripts/run-command.ts";
import { blocksOf } from "./support/document-blocks.ts";

function isInstalled(page: string): boolean {
  return existsSync(join(repositoryRoot, ".troupe", "peers", `coming-from-${basename(page, ".md")}`, "installed.json"));
}

describe.each(comparisons())("$page", (comparison) => {
  const { page, versions, blocks } = comparison;

  test("names the versions that it compares with", () => {
    expect(Object.keys(versions).length).toBeGreaterThan(0);
  });

  test("has one program of ours behind each of theirs", () => {
    const code = blocksOf(page, readFileSync(join(repositoryRoot, page), "utf8")).filter(({ language }) =>
      /^(ts|sh|json)$/.test(language),
    );
    expect(blocks.length).toBeGreaterThan(8);
    const sides = code.map(({ flags }) => (flags.includes("theirs") ? "theirs" : "ours")).join(" ");
    expect(sides).toMatch(/^(theirs ours ?)+$/);
  });

  test.runIf(isInstalled(page))("shows code of theirs that compiles", async () => {
    const fault = await faultOf(comparison);
    expect(fault === undefined, fault).toBe(true);
  });
});
