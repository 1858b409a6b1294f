import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseSync } from "oxc-parser";
import { describe, expect, test } from "vitest";
import { repositoryRoot } from "../../scripts/run-command.ts";
import { publicNames } from "./public-names.ts";
import { cliExceptions, serverExceptions } from "./folder-names.ts";

interface NameUse {
  readonly file: string;
  /** The folder that exports it. */
  readonly from: string;
  readonly name: string;
}

/** The names that the files of a folder import from other folders, as exported there. */
function namesFromFolders(name: string): NameUse[] {
  const folder = join(repositoryRoot, "src", name);
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((path) => path.endsWith(".ts"));
  return files.flatMap((file) => {
    const up = "../".repeat(file.split(/[\\/]/).length);
    const { program } = parseSync(file, readFileSync(join(folder, file), "utf8"));
    return program.body.flatMap((node) => {
      if (node.type !== "ImportDeclaration" || !node.source.value.startsWith(up)) return [];
      const from = node.source.value.slice(up.length).split("/")[0] ?? "";
      return node.specifiers.map((specifier) => ({
        file,
        from,
        name:
          specifier.type === "ImportSpecifier" && specifier.imported.type === "Identifier"
            ? specifier.imported.name
            : "*",
      }));
    });
  });
}

const known = new Set(Object.values(publicNames).flat());

describe.each([
  { folder: "cli", exceptions: Object.values(cliExceptions).flat(), free: [] as readonly string[], least: 100 },
  {
    folder: "server",
    exceptions: Object.values(serverExceptions).flat(),
    free: ["base", "errors", "net", "redis"],
    least: 50,
  },
])("$folder", ({ folder, exceptions, free, least }) => {
  const used = namesFromFolders(folder).filter(({ from }) => !free.includes(from));

  test("uses the names that the package exports, and the listed exceptions", () => {
    expect(used.length).toBeGreaterThan(least);
    expect(used.filter(({ name }) => !known.has(name) && !exceptions.includes(name))).toEqual([]);
  });

  test("needs every exception, once", () => {
    const names = new Set(used.map(({ name }) => name));
    expect(exceptions.filter((name) => known.has(name) || !names.has(name))).toEqual([]);
    expect(new Set(exceptions).size).toBe(exceptions.length);
  });
});
