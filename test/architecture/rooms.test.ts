import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseSync } from "oxc-parser";
import { describe, expect, test } from "vitest";
import { repositoryRoot } from "../../scripts/run-command.ts";
import { publicNames } from "./public-names.ts";
import { cliExceptions, serverExceptions } from "./room-names.ts";

interface NameUse {
  readonly file: string;
  /** The room that it comes from. */
  readonly from: string;
  readonly name: string;
}

/** The names that the files of a room import from other rooms, as those rooms export them. */
function namesFromRooms(name: string): NameUse[] {
  const room = join(repositoryRoot, "src", name);
  const files = readdirSync(room, { recursive: true, encoding: "utf8" }).filter((path) => path.endsWith(".ts"));
  return files.flatMap((file) => {
    const up = "../".repeat(file.split(/[\\/]/).length);
    const { program } = parseSync(file, readFileSync(join(room, file), "utf8"));
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
  { room: "cli", exceptions: Object.values(cliExceptions).flat(), free: [] as readonly string[], least: 100 },
  {
    room: "server",
    exceptions: Object.values(serverExceptions).flat(),
    free: ["base", "errors", "redis"],
    least: 50,
  },
])("$room", ({ room, exceptions, free, least }) => {
  const used = namesFromRooms(room).filter(({ from }) => !free.includes(from));

  test("uses the names that a user of the package has, and the exceptions that are written down", () => {
    expect(used.length).toBeGreaterThan(least);
    expect(used.filter(({ name }) => !known.has(name) && !exceptions.includes(name))).toEqual([]);
  });

  test("needs every exception, once", () => {
    const names = new Set(used.map(({ name }) => name));
    expect(exceptions.filter((name) => known.has(name) || !names.has(name))).toEqual([]);
    expect(new Set(exceptions).size).toBe(exceptions.length);
  });
});
