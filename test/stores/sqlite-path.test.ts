import { linkSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { InvalidInputError } from "../../src/errors/index.ts";
import { sqliteStores } from "../../src/stores/sqlite.ts";
import { note } from "../contracts/entry-fixtures.ts";
import { agentKey, openAgent } from "../contracts/stores-fixtures.ts";
import { temporaryFile } from "./temporary-file.ts";

/** Names and modes of the files in a folder. */
function filesIn(folder: string): string[] {
  return readdirSync(folder)
    .toSorted()
    .map((name) => `${name} ${(statSync(join(folder, name)).mode & 0o777).toString(8)}`);
}

describe("a database path", () => {
  let folder: string;
  beforeEach(() => {
    folder = dirname(temporaryFile());
    const [directory, umask] = [process.cwd(), process.umask(0o022)];
    process.chdir(folder);
    onTestFinished(() => {
      process.chdir(directory);
      process.umask(umask);
    });
  });

  test.each([
    ["file:team.db", "team.db"],
    ["file:./team.db?mode=memory", "./team.db"],
    ["file:team.db?mode=ro&cache=shared", "team.db"],
    ["FILE:team.db", "team.db"],
    [" file:team.db", "team.db"],
    ["file:/srv/team.db?vfs=unix-none", "/srv/team.db"],
    ["file:///srv/team.db#x", "/srv/team.db"],
    ["file::memory:", ":memory:"],
    ["file:", "./team.db"],
  ])("that is the URL %j is refused, with the path to give", (url, path) => {
    const open = () => sqliteStores(url);
    expect(open).toThrow(InvalidInputError);
    expect(open).toThrow(`is a URL; give the path of the file itself: ${path}`);
    expect(readdirSync(folder)).toEqual([]);
  });

  test.each([[""], ["  "], ["a\0b.db"], [undefined], [new URL("file:///tmp/x.db")], [7]])("%j is refused", (path) => {
    expect(() => sqliteStores(path as string)).toThrow(/is not a path; give the path of a file, or :memory:/);
    expect(readdirSync(folder)).toEqual([]);
  });

  test.each([
    ["team.db?mode=memory"],
    ["team.db?vfs=unix-none#x"],
    ["a%20b.db"],
    [":memory"],
    [":MEMORY:"],
    [" :memory:"],
    ["x:team.db"],
    ["-log"],
    ["memdb"],
  ])("%j means exactly that file, for its owner only", async (name) => {
    const stores = sqliteStores(name);
    await openAgent(stores);
    expect(filesIn(folder)).toEqual(
      ["", "-shm", "-wal"].map((end) => `${name}${end} 600`).toSorted((a, b) => (a < b ? -1 : 1)),
    );
    await stores.close();
    expect(filesIn(folder)).toEqual([`${name} 600`]);
    expect(readFileSync(name, "latin1").startsWith("SQLite format 3")).toBe(true);
  });

  test.each(["team.db/", "./", "team.db//"])("%j, which is that of a folder, is refused", async (path) => {
    await sqliteStores("team.db").close();
    const open = () => sqliteStores(path);
    expect(open).toThrow(InvalidInputError);
    expect(open).toThrow(/ends like the path of a folder/);
  });

  test("keeps its meaning when the process changes its directory", async () => {
    const stores = sqliteStores("team.db");
    const other = dirname(temporaryFile());
    process.chdir(other);
    await openAgent(stores);
    await stores.close();
    expect(readdirSync(other)).toEqual([]);
    expect(filesIn(folder)).toEqual(["team.db 600"]);
  });

  test("that is a symbolic link means the file it points to, also one that does not exist yet", async () => {
    const real = temporaryFile();
    symlinkSync(real, "link.db");
    const stores = sqliteStores("link.db");
    const owner = await openAgent(stores);
    await owner.commit({ entries: [note("kept")] });
    for (const path of [real, "link.db"]) {
      const reader = sqliteStores(path);
      expect(await reader.readJournal(agentKey(), 2)).toMatchObject([{ entries: [{ message: "kept" }] }]);
      await reader.close();
    }
    await stores.close();
    expect(filesIn(dirname(real))).toEqual([`${basename(real)} 600`]);
    expect(readdirSync(folder)).toEqual(["link.db"]);
  });

  test("with a second hard link is refused under both names, until one of them is gone", async () => {
    await sqliteStores("team.db").close();
    linkSync("team.db", "hard.db");
    for (const name of ["team.db", "hard.db"]) {
      const open = () => sqliteStores(name);
      expect(open).toThrow(InvalidInputError);
      expect(open).toThrow(/is one of 2 hard links to a file; keep only one of them/);
    }
    rmSync("hard.db");
    await sqliteStores("team.db").close();
  });

  test.skipIf(process.platform === "win32")("of a device is refused", () => {
    expect(() => sqliteStores("/dev/null")).toThrow(/is not a regular file/);
  });
});
