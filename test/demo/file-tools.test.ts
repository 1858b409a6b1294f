import { spawnSync } from "node:child_process";
import { mkdir, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { loopTools, temporaryFolder } from "./team-loop.ts";

const long = Array.from({ length: 900 }, (_, index) => `Line ${index + 1} of a long text.`).join("\n");

describe("file tools", () => {
  let folder: Awaited<ReturnType<typeof temporaryFolder>>;
  let root: string;
  let call: (tool: "list" | "search" | "read", args: object) => Promise<string>;
  beforeAll(async () => {
    folder = await temporaryFolder({
      "secret.md": "# Secret\n\nThe launch code is 4711.\n",
      "files/node_modules/pack/guide.md":
        "# Guide\n\n## Rivers\n\nA river flows from its spring\nto the sea. The longest river\nis the Nile, at 6650 km.\n\n## Lakes\n\nLakes are still. A lake may be salty.\n",
      "files/node_modules/pack/long.txt": long,
      "files/node_modules/pack/src/river.ts": "export const river = 'Nile'; // the longest river\n",
      "files/node_modules/pack/windows.md": "\uFEFF# Windows\r\n\r\nLines end in two signs.\r\n",
      "files/node_modules/pack/empty.md": "",
      "files/node_modules/pack/image.png": new Uint8Array([137, 80, 78, 71, 0, 1, 2]),
      "files/node_modules/pack/huge.txt": "river ".repeat(400_000),
      "files/node_modules/pack/.git/config.md": "# river\n",
      "files/node_modules/pack/.env": "RIVER=1\n",
      "files/node_modules/pack/node_modules/other/README.md": "# river\n",
    });
    root = join(folder.root, "files/node_modules/pack");
    await symlink(join(folder.root, "secret.md"), join(root, "link-out.md"));
    await symlink(folder.root, join(root, "folder-out"));
    await symlink(join(root, "guide.md"), join(root, "link-in.md"));
    const tools = loopTools(root);
    call = (tool, args) => tools[tool].run(JSON.stringify(args));
  });
  afterAll(() => folder.remove());

  test("lists text files with lines and heading, documents first, without binary, huge, hidden, linked or installed ones", async () => {
    expect((await call("list", {})).split("\n")).toEqual([
      "empty.md  0 lines",
      "guide.md  11 lines  # Guide",
      "long.txt  900 lines",
      "windows.md  3 lines  # Windows",
      "src/river.ts  1 lines",
    ]);
  });

  test("lists the paths that contain a text, and reports if there is none", async () => {
    expect(await call("list", { part: "src/" })).toBe("src/river.ts  1 lines");
    expect(await call("list", { part: ".pdf" })).toMatch(/No path contains "\.pdf"; \d+ files do not\./);
  });

  test("returns hits with the line where the sentence begins, and the headings above it", async () => {
    const hits = (await call("search", { query: "longest river" })).split("\n").slice(1);
    expect(hits[0]).toBe("guide.md:6: The longest river is the Nile, at 6650 km. [under: Guide > Rivers]");
    expect(hits).toContain("guide.md:5: A river flows from its spring to the sea. [under: Guide > Rivers]");
    expect(hits).toContain("src/river.ts:1: export const river = 'Nile'; // the longest river");
    expect(hits).toContain("guide.md:3: ## Rivers [under: Guide]");
  });

  test("finds word forms and exact phrases, in one file on request, up to a limit", async () => {
    expect(await call("search", { query: "flowing" })).toContain("guide.md:5: A river flows");
    const phrase = (await call("search", { query: '"may be salty"' })).split("\n");
    expect(phrase[1]).toBe("guide.md:11: A lake may be salty. [under: Guide > Lakes]");
    const one = (await call("search", { query: "line text", file: "long.txt", maxResults: 3 })).split("\n").slice(1);
    expect(one).toHaveLength(3);
    expect(await call("search", { query: "volcano" })).toBe("No passage in 5 files has any of: volcano.");
  });

  test("reads lines with their numbers, and names their range and headings", async () => {
    expect(await call("read", { path: "guide.md", startLine: 5, endLine: 6 })).toBe(
      "guide.md, lines 5-6 of 11, under: Guide > Rivers\n5: A river flows from its spring\n6: to the sea. The longest river",
    );
    expect(await call("read", { path: "windows.md" })).toBe(
      "windows.md, lines 1-3 of 3\n1: # Windows\n2: \n3: Lines end in two signs.",
    );
    expect(await call("read", { path: "empty.md" })).toBe("empty.md is empty.");
  });

  test("reads at most 400 lines per call", async () => {
    const lines = (await call("read", { path: "long.txt", startLine: 101 })).split("\n");
    expect(lines[0]).toBe("long.txt, lines 101-500 of 900");
    expect(lines).toHaveLength(401);
    expect(lines.at(-1)).toBe("500: Line 500 of a long text.");
  });

  test.each([
    ["../../../secret.md", "the path must be below the folder"],
    ["src\\..\\..\\secret.md", "there is no such file"],
    ["/etc/passwd", "the path must be below the folder"],
    ["C:\\secret.md", "the path must be below the folder"],
    ["link-out.md", "it is a link to a file outside the folder"],
    ["folder-out/secret.md", "it is a link to a file outside the folder"],
    ["guide.md\0.png", "the path must be below the folder"],
    ["", "the path must be below the folder"],
    ["nowhere.md", "there is no such file"],
    ["src", "it is not a regular file"],
    ["image.png", "the file is not text"],
    ["huge.txt", "the file has 2400000 bytes, at most 2000000 are read"],
    [".env", "it is not one of the readable files"],
    [".git/config.md", "it is not one of the readable files"],
    ["node_modules/other/README.md", "it is not one of the readable files"],
  ])("refuses to read or search %j with the reason, without showing the folder's path", async (path, why) => {
    for (const [tool, args] of [
      ["read", { path }],
      ["search", { query: "river", file: path }],
    ] as const) {
      const error = await call(tool, args).catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(Error);
      expect((error as Error).message).toContain(why);
      expect((error as Error).message).not.toContain(folder.root);
    }
  });

  test("follows a link that stays inside, and names the target file", async () => {
    expect(await call("read", { path: "link-in.md", endLine: 1 })).toBe("guide.md, lines 1-1 of 11\n1: # Guide");
  });

  test("does not block on a pipe", async () => {
    spawnSync("mkfifo", [join(root, "pipe.md")]);
    try {
      await expect(call("read", { path: "pipe.md" })).rejects.toThrow("it is not a regular file");
      expect(await call("list", {})).not.toContain("pipe.md");
    } finally {
      await rm(join(root, "pipe.md"), { force: true });
    }
  });

  test("returns an error for invalid arguments to the model", async () => {
    await expect(call("read", { path: "guide.md", startLine: 0 })).rejects.toThrow(/startLine/);
    await expect(call("read", { path: "guide.md", startLine: 9, endLine: 3 })).rejects.toThrow(
      "endLine 3 is before startLine 9",
    );
    await expect(call("read", { path: "guide.md", startLine: 99 })).rejects.toThrow(
      "guide.md has only 11 lines; startLine was 99.",
    );
    await expect(call("search", { query: "river", maxResults: 1_000 })).rejects.toThrow(/maxResults/);
    expect(await call("search", { query: "the of" })).toMatch(/^The query has no word to search for/);
  });

  test("restricted to some entries, it ignores all others", async () => {
    const limited = loopTools(root, undefined, ["windows.md", "src"]);
    expect(await limited.list.run("{}")).toBe("windows.md  3 lines  # Windows\nsrc/river.ts  1 lines");
    expect(await limited.search.run('{"query":"longest river"}')).not.toContain("guide.md");
    await expect(limited.read.run('{"path":"guide.md"}')).rejects.toThrow("is not one of the readable files");
    await expect(limited.read.run('{"path":"link-in.md"}')).rejects.toThrow("is not one of the readable files");
  });

  test("stops when the run is aborted", async () => {
    const aborted = loopTools(root, AbortSignal.abort(new Error("interrupted")));
    await expect(aborted.list.run("{}")).rejects.toThrow("interrupted");
    await expect(aborted.search.run('{"query":"river"}')).rejects.toThrow("interrupted");
    await expect(aborted.read.run('{"path":"guide.md"}')).rejects.toThrow("interrupted");
  });

  test("reports a missing or empty folder", async () => {
    await expect(loopTools(join(folder.root, "gone")).list.run("{}")).rejects.toThrow(
      "The folder of documents cannot be opened.",
    );
    await mkdir(join(folder.root, "bare"));
    expect(await loopTools(join(folder.root, "bare")).list.run("{}")).toBe("There are no text files here.");
  });

  test("lists a hundred files and the number of the others", async () => {
    const many = join(folder.root, "many");
    await mkdir(many);
    await Promise.all(Array.from({ length: 130 }, (_, index) => writeFile(join(many, `page-${index}.md`), "# Page\n")));
    const lines = (await loopTools(many).list.run("{}")).split("\n");
    expect(lines).toHaveLength(101);
    expect(lines.at(-1)).toBe("… and 30 more files; give a part of their paths to see them.");
  });
});
