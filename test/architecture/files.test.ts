import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { entryFiles, readManifest } from "../../scripts/manifest.ts";
import { repositoryRoot, sourceCondition } from "../../scripts/run-command.ts";

// docs/decisions/2026-11-23-files.md gives the reasons for these numbers.
const MOST_CORE_FILES = 450;
const SMALL_LINES = 60;
const MOST_SMALL_PERCENT = 12;
const MEDIAN_LINES = [110, 220] as const;

/** What outsiders see of a runtime. Each protocol and each view is one of several, so their number follows what is served and shown. */
const surfaces = ["src/server/", "src/inspector/"];

const lines = new Map(
  readdirSync(join(repositoryRoot, "src"), { recursive: true, encoding: "utf8" })
    .filter((path) => /\.tsx?$/.test(path))
    .map((path) => `src/${path.replaceAll("\\", "/")}`)
    .map((path) => [path, readFileSync(join(repositoryRoot, path), "utf8").split("\n").length - 1] as const),
);

test("the core has a bounded number of files", () => {
  const core = [...lines.keys()].filter((path) => !surfaces.some((surface) => path.startsWith(surface)));
  expect(core.length).toBeGreaterThan(MOST_CORE_FILES / 2);
  expect(core.length).toBeLessThanOrEqual(MOST_CORE_FILES);
});

test("a file is an idea and not a function: few are small, and the median is neither", () => {
  const entries = Object.values(entryFiles(readManifest(), sourceCondition)).flat();
  const ideas = [...lines].filter(([path]) => !path.endsWith("/index.ts") && !entries.includes(path));
  const small = ideas.filter(([, count]) => count < SMALL_LINES).map(([path]) => path);
  expect((100 * small.length) / ideas.length, small.join("\n")).toBeLessThan(MOST_SMALL_PERCENT);
  const sorted = ideas.map(([, count]) => count).toSorted((one, other) => one - other);
  const median = sorted[Math.floor(sorted.length / 2)] ?? 0;
  expect(median).toBeGreaterThan(MEDIAN_LINES[0]);
  expect(median).toBeLessThan(MEDIAN_LINES[1]);
});
