import { describe, expect, test } from "vitest";
import { workspace, type WorkspaceFiles } from "../../src/kit/index.ts";
import { type Calling, resultsOf } from "./kit-runs.ts";

const write = (path: string, content: string) => ({ name: "write", arguments: { path, content } });
const read = (path: string, more: object = {}) => ({ name: "read", arguments: { path, ...more } });
const edit = (path: string, old: string, next: string, more: object = {}) => ({
  name: "edit",
  arguments: { path, old, new: next, ...more },
});

/** What every `WorkspaceFiles` does, seen through the tools of `workspace()`. */
export function workspaceContract(name: string, create: () => WorkspaceFiles): void {
  const through = (calls: readonly Calling[]) => resultsOf(calls, { plugins: [workspace(create())] });
  describe(`the files of a workspace: ${name}`, () => {
    test("a file is written with its folders, listed, read, edited and found", async () => {
      const results = await through([
        write("src/deep/a.ts", "one\ntwo\nthree\n"),
        write("notes.md", "two\n"),
        { name: "ls", arguments: {} },
        { name: "ls", arguments: { path: "src/" } },
        read("./src/deep/a.ts"),
        edit("src/deep/a.ts", "two", "zwei"),
        read("src/deep/a.ts", { from: 2, lines: 1 }),
        { name: "glob", arguments: { pattern: "**/*.{ts,js}" } },
        { name: "grep", arguments: { pattern: "^(two|ZWEI)$", ignoreCase: true } },
        { name: "grep", arguments: { pattern: "two", path: "notes.md" } },
        { name: "grep", arguments: { pattern: "two", glob: "src/**" } },
      ]);
      expect(results).toEqual([
        "Wrote src/deep/a.ts: 3 lines, 14 bytes.",
        "Wrote notes.md: 1 lines, 4 bytes.",
        "notes.md  4\nsrc/",
        "deep/",
        "1\tone\n2\ttwo\n3\tthree",
        "Edited src/deep/a.ts at line 2.",
        "2\tzwei\n\n[lines 2 to 2 of 3; go on with from: 3]",
        "src/deep/a.ts",
        "notes.md:1: two\nsrc/deep/a.ts:2: zwei",
        "notes.md:1: two",
        "No line matches.",
      ]);
    });

    test("an edit that is not clear changes nothing and names the reason", async () => {
      const results = await through([
        write("a", "x y x"),
        edit("a", "x", "z"),
        edit("a", "q", "z"),
        edit("a", "x", "x"),
        edit("b", "x", "z"),
        edit("a", "x", "z", { all: true }),
        read("a"),
      ]);
      expect(results[1]).toContain("old occurs 2 times in it");
      expect(results[2]).toContain("old does not occur in it");
      expect(results[3]).toContain("old and new are the same");
      expect(results[4]).toContain("there is no such file");
      expect(results.slice(5)).toEqual(["Edited a: 2 passages, from line 1 on.", "1\tz y z"]);
    });

    test("line ends are kept, whichever the model writes", async () => {
      const results = await through([
        write("a", "one\r\ntwo\r\nthree\r\n"),
        edit("a", "one\ntwo\n", "1\n2\n2b\n"),
        edit("a", "three", "3\n4"),
        { name: "grep", arguments: { pattern: "\\r" } },
        read("a"),
      ]);
      expect(results.slice(3)).toEqual(["No line matches.", "1\t1\n2\t2\n3\t2b\n4\t3\n5\t4"]);
    });

    test.each([
      "../a",
      "a/../../b",
      "/etc/passwd",
      "C:/a",
      "a\0b",
      "a\nb",
      "a\\b",
      "\u202Ea",
      "x".repeat(300),
      "a/".repeat(100),
      "",
    ])("the path %j is refused by every tool", async (path) => {
      const results = await through([write(path, "x"), read(path), edit(path, "a", "b")]);
      for (const result of results) expect(result).toMatch(/cannot be used: /);
      if (path === "") return;
      for (const name of ["ls", "glob", "grep"]) {
        const [result] = await through([{ name, arguments: { path, pattern: "x" } }]);
        expect(result, name).toMatch(/cannot be used: /);
      }
    });

    test("files are not listed as folders, and folders not read as files", async () => {
      const results = await through([
        write("a", "x"),
        write("b/c", "x"),
        write("a/d", "x"),
        write("b", "x"),
        read("b"),
        { name: "ls", arguments: { path: "a" } },
        { name: "ls", arguments: { path: "missing" } },
      ]);
      for (const result of results.slice(2)) expect(result).toMatch(/cannot be used: /);
    });

    test("edits of one answer all take effect", async () => {
      const [, , , result] = await resultsOf(
        [
          write("a", "one two three"),
          { name: "edit", arguments: { path: "a", old: "one", new: "1" } },
          edit("a", "two", "2"),
          read("a"),
        ],
        { plugins: [workspace(create())] },
      );
      expect(result).toBe("1\t1 2 three");
    });
  });
}
