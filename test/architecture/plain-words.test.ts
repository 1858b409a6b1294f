import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { repositoryRoot } from "../../scripts/run-command.ts";
import { habits, proseOf } from "./plain-words.ts";

/** Texts that are data: inputs of tests, ids, stop words. */
const data: readonly string[] = [
  "src/model/offline-search.ts",
  "test/architecture/plain-words.ts",
  "test/architecture/plain-words.test.ts",
  "test/browser/requests.test.ts",
  "test/demo/team.test.ts",
  "test/runtime/checked-ids.test.ts",
  "test/runtime/subagents-control.test.ts",
];

function sources(folder: string): string[] {
  return readdirSync(join(repositoryRoot, folder), { recursive: true, encoding: "utf8" })
    .filter((path) => /\.tsx?$/.test(path) && !path.includes("node_modules"))
    .map((path) => `${folder}/${path.replaceAll("\\", "/")}`)
    .filter((path) => !data.includes(path));
}

describe("comments, messages and titles", () => {
  test.each(["src", "test", "chaos", "bench", "examples", "scripts", "site"])(
    "of %s have none of the worst habits",
    (folder) => {
      const faults = sources(folder).flatMap((path) =>
        proseOf(path, readFileSync(join(repositoryRoot, path), "utf8")).flatMap(({ line, text }) =>
          habits
            .filter(({ pattern }) => pattern.test(text))
            .map(({ instead }) => `${path}:${line}: ${text.slice(0, 120)}: ${instead}`),
        ),
      );
      expect(faults).toEqual([]);
    },
  );

  test("are found with their line numbers", () => {
    const source = '/**\n * Null: nobody waits.\n */\nthrow new Error("url is no address of Redis");\n';
    const found = proseOf("a.ts", source).flatMap(({ line, text }) =>
      habits.flatMap(({ pattern }) => (pattern.test(text) ? [line] : [])),
    );
    expect(found).toEqual([2, 2, 4]);
  });
});
