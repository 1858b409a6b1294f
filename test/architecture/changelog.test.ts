import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { releasedChangelog } from "../../scripts/changelog.ts";
import { repositoryRoot } from "../../scripts/run-command.ts";

const introduction = "# Changelog\n\nThe format follows a convention.\n";

test("a release contains the lines of its changesets, then the manually added ones", () => {
  const before = `${introduction}\n## Unreleased\n\n### Fixed\n\n- A fault.\n\n## 0.1.0 – 2026-01-01\n\n- First.\n`;
  const written = `# Changelog\n\n## 0.2.0\n\n### Minor Changes\n\n- A feature.\n\nThe format follows a convention.\n\n## Unreleased\n\n### Fixed\n\n- A fault.\n\n## 0.1.0 – 2026-01-01\n\n- First.\n`;
  expect(releasedChangelog(before, written, "0.2.0", "2026-02-01")).toBe(
    `${introduction}\n## 0.2.0 – 2026-02-01\n\n### Minor Changes\n\n- A feature.\n\n### Fixed\n\n- A fault.\n\n## 0.1.0 – 2026-01-01\n\n- First.\n`,
  );
});

test("CHANGELOG.md has versions in order, each with a date, and contains only known headings", () => {
  const changelog = readFileSync(join(repositoryRoot, "CHANGELOG.md"), "utf8");
  const headings = [...changelog.matchAll(/^## (.+)$/gm)].map(([, heading = ""]) => heading);
  const versions = headings.filter((heading) => heading !== "Unreleased");
  expect(headings.indexOf("Unreleased")).toBeLessThanOrEqual(0);
  expect(versions.filter((heading) => !/^\d+\.\d+\.\d+ – \d{4}-\d\d-\d\d$/.test(heading))).toEqual([]);
  const kinds = [...changelog.matchAll(/^### (.+)$/gm)].map(([, kind = ""]) => kind);
  const known = [
    "Added",
    "Changed",
    "Fixed",
    "Removed",
    "Deprecated",
    "Security",
    "Major Changes",
    "Minor Changes",
    "Patch Changes",
  ];
  expect(kinds.filter((kind) => !known.includes(kind))).toEqual([]);
});
