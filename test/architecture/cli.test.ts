import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseSync } from "oxc-parser";
import { expect, test } from "vitest";
import { repositoryRoot } from "../../scripts/run-command.ts";
import { cliExceptions } from "./cli-names.ts";
import { publicNames } from "./public-names.ts";

interface NameUse {
  readonly file: string;
  readonly name: string;
}

/** The names that the files of `src/cli` import from other rooms, as those rooms export them. */
function namesFromRooms(): NameUse[] {
  const room = join(repositoryRoot, "src/cli");
  const files = readdirSync(room, { recursive: true, encoding: "utf8" }).filter((path) => path.endsWith(".ts"));
  return files.flatMap((file) => {
    const up = "../".repeat(file.split(/[\\/]/).length);
    const { program } = parseSync(file, readFileSync(join(room, file), "utf8"));
    return program.body.flatMap((node) => {
      if (node.type !== "ImportDeclaration" || !node.source.value.startsWith(up)) return [];
      return node.specifiers.map((specifier) => ({
        file,
        name:
          specifier.type === "ImportSpecifier" && specifier.imported.type === "Identifier"
            ? specifier.imported.name
            : "*",
      }));
    });
  });
}

const used = namesFromRooms();
const known = new Set(Object.values(publicNames).flat());
const exceptions = Object.values(cliExceptions).flat();

test("the command line uses the names that a user of the package has, and the exceptions that are written down", () => {
  expect(used.length).toBeGreaterThan(100);
  expect(used.filter(({ name }) => !known.has(name) && !exceptions.includes(name))).toEqual([]);
});

test("every exception is needed, once", () => {
  const names = new Set(used.map(({ name }) => name));
  expect(exceptions.filter((name) => known.has(name) || !names.has(name))).toEqual([]);
  expect(new Set(exceptions).size).toBe(exceptions.length);
});
