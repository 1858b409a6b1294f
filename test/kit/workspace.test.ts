import { spawnSync } from "node:child_process";
import { linkSync, mkdirSync, readdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { rename, rm } from "node:fs/promises";
import { performance } from "node:perf_hooks";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { type AgentTool, defineAgent, memoryStores } from "../../src/index.ts";
import { artifactFiles, folder, workspace, type WorkspaceFiles } from "../../src/kit/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { toolTextsOf } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { emptyFolder, resultsOf } from "./kit-runs.ts";
import { workspaceContract } from "./workspace-files.contract.ts";

workspaceContract("folder()", () => folder(emptyFolder()));
workspaceContract("artifactFiles()", () => artifactFiles());

const read = (path: string, more: object = {}) => ({ name: "read", arguments: { path, ...more } });
const write = (path: string, content = "x") => ({ name: "write", arguments: { path, content } });

describe("the jail of folder()", () => {
  test("links that lead out are neither read, written, listed nor searched; those within are", async () => {
    const outside = emptyFolder();
    writeFileSync(join(outside, "secret"), "canary");
    const root = emptyFolder();
    mkdirSync(join(root, "in"));
    writeFileSync(join(root, "in", "file"), "within");
    symlinkSync(join(outside, "secret"), join(root, "file-link"));
    symlinkSync(outside, join(root, "folder-link"));
    symlinkSync(join(outside, "new"), join(root, "broken-link"));
    symlinkSync("in", join(root, "own-link"));
    const paths = ["file-link", "folder-link/secret", "folder-link/new/er", "broken-link"];
    const calls = paths.flatMap((path) => [read(path), write(path)]);
    const found = [
      { name: "ls", arguments: { path: "folder-link" } },
      { name: "grep", arguments: { pattern: "canary", path: "folder-link" } },
      { name: "grep", arguments: { pattern: "canary" } },
    ];
    const results = await resultsOf([...calls, ...found, read("own-link/file"), write("own-link/file", "new")], {
      plugins: [workspace(folder(root))],
    });
    for (const result of results.slice(0, calls.length + 2)) expect(result).toMatch(/cannot be used: /);
    expect(results.join("\n")).not.toMatch(/canary|troupe-kit-/);
    expect(results.at(-2)).toBe("1\twithin");
    expect(readFileSync(join(root, "in", "file"), "utf8")).toBe("new");
    expect(readdirSync(outside)).toEqual(["secret"]);
    expect(readFileSync(join(outside, "secret"), "utf8")).toBe("canary");
  });

  test("a hard link to a file outside is replaced, not written through", async () => {
    const outside = join(emptyFolder(), "file");
    writeFileSync(outside, "old");
    const root = emptyFolder();
    linkSync(outside, join(root, "file"));
    await resultsOf([write("file", "new")], { plugins: [workspace(folder(root))] });
    expect([readFileSync(outside, "utf8"), readFileSync(join(root, "file"), "utf8")]).toEqual(["old", "new"]);
    expect(readdirSync(root)).toEqual(["file"]);
  });

  test("a pipe, a device and a folder are no files; a pipe without a writer does not block", async () => {
    const root = emptyFolder();
    spawnSync("mkfifo", [join(root, "pipe")]);
    symlinkSync("/dev/zero", join(root, "zero"));
    const results = await resultsOf(
      [
        read("pipe"),
        write("pipe"),
        read("zero"),
        { name: "ls", arguments: {} },
        { name: "grep", arguments: { pattern: "x" } },
      ],
      { plugins: [workspace(folder(root))] },
    );
    for (const result of results.slice(0, 2))
      expect(result).toMatch(/cannot be used: it is not a regular file|there is no such/);
    expect(results[2]).toContain("it leads out of the workspace");
    expect(results.slice(3)).toEqual(["pipe  (other)\nzero  (link)", "No line matches."]);
  });

  test.skipIf(process.platform !== "linux")(
    "a folder that becomes a link again and again never leads out",
    async () => {
      const outside = emptyFolder();
      writeFileSync(join(outside, "file"), "canary");
      const root = emptyFolder();
      mkdirSync(join(root, "real"));
      writeFileSync(join(root, "real", "file"), "within");
      symlinkSync(outside, join(root, "evil"));
      renameSync(join(root, "real"), join(root, "dir"));
      const files = folder(root);
      const run = { signal: new AbortController().signal } as never;
      let isOver = false;
      // While there is no "dir", a write makes a folder of this name.
      const put = async (name: string): Promise<void> => {
        const isPut = await rename(join(root, name), join(root, "dir")).then(
          () => true,
          () => false,
        );
        if (isPut) return;
        await rm(join(root, "dir"), { recursive: true, force: true });
        await put(name);
      };
      const swapping = (async () => {
        while (!isOver) {
          await rename(join(root, "dir"), join(root, "real"));
          await put("evil");
          await rename(join(root, "dir"), join(root, "evil"));
          await put("real");
        }
      })();
      const seen = new Set<string>();
      for (let round = 0; round < 300; round += 1) {
        const text = await files.read("dir/file", { maxBytes: 100 }, run).then(String, () => "refused");
        await files.write("dir/new", Buffer.from("x"), run).catch(() => undefined);
        seen.add(text);
      }
      isOver = true;
      await swapping;
      expect(seen).not.toContain("canary");
      expect(readdirSync(outside)).toEqual(["file"]);
    },
  );

  test("nothing is written into .git, which is not searched either; ls and read show it", async () => {
    const root = emptyFolder();
    mkdirSync(join(root, ".git", "hooks"), { recursive: true });
    mkdirSync(join(root, "node_modules"));
    writeFileSync(join(root, ".git", "config"), "needle");
    writeFileSync(join(root, "node_modules", "a"), "needle");
    symlinkSync(".git", join(root, "g"));
    const results = await resultsOf(
      [
        write(".git/hooks/pre-commit"),
        write("sub/.GIT/config"),
        write("g/config"),
        { name: "grep", arguments: { pattern: "needle" } },
        { name: "glob", arguments: { pattern: "**" } },
        read(".git/config"),
      ],
      { plugins: [workspace(folder(root))] },
    );
    for (const result of results.slice(0, 3)) expect(result).toContain("nothing is written into .git");
    expect(results.slice(3)).toEqual(["No line matches.", "No file matches.", "1\tneedle"]);
  });

  test("a folder that is missing is named at the start", () => {
    expect(() => folder("./does-not-exist")).toThrow(/there is no folder ".*does-not-exist"; create it first/);
    expect(() => folder(import.meta.filename)).toThrow(/is not a folder/);
    for (const wrong of [undefined, null, 3, "", " ", "a\0b", {}]) {
      expect(() => folder(wrong as string)).toThrow(/expects the path of a folder/);
    }
  });
});

test("binary and large files are refused, long ones are read in parts, images are shown", async () => {
  const root = emptyFolder();
  writeFileSync(join(root, "binary"), Buffer.from([1, 0, 2]));
  writeFileSync(join(root, "latin1"), Buffer.from([0xe4, 0x20]));
  writeFileSync(join(root, "large"), "x".repeat(3_000));
  writeFileSync(join(root, "lines"), Array.from({ length: 2_500 }, (_, line) => `line ${line + 1}`).join("\n"));
  writeFileSync(join(root, "wide"), `${"w".repeat(1_000)}\n`.repeat(2));
  writeFileSync(join(root, "a.png"), Buffer.from("iVBORw0KGgo=", "base64"));
  const calls = ["binary", "latin1", "large", "wide", "a.png", "missing"].map((path) => read(path));
  const results = await resultsOf(calls, { plugins: [workspace(folder(root), { maxFileBytes: 2_900 })] });
  expect(results[0]).toContain("it is not a text file in UTF-8 (3 bytes)");
  expect(results[1]).toContain("it is not a text file in UTF-8 (2 bytes)");
  expect(results[2]).toContain("the file has 3000 bytes, and at most 2900 are read");
  expect(results[4]).toBe("[image 1]");
  expect(results[5]).toContain("there is no such file");
  const parts = await resultsOf([read("lines"), read("lines", { from: 2_500 }), read("lines", { from: 9_999 })], {
    plugins: [workspace(folder(root))],
  });
  expect(parts[0]).toMatch(/\[lines 1 to \d+ of 2500; go on with from: \d+\]$/);
  expect(parts[1]).toBe("2500\tline 2500");
  expect(parts[2]).toContain("it has 2500 lines");
});

test("an edit of a file that was saved meanwhile is refused, and keeps what was saved", async () => {
  const root = emptyFolder();
  writeFileSync(join(root, "a"), "one");
  const real = folder(root);
  const busy: WorkspaceFiles = {
    ...real,
    async read(path, options, run) {
      const content = await real.read(path, options, run);
      writeFileSync(join(root, "a"), "one, saved by a person");
      return content;
    },
  };
  const [result] = await resultsOf([{ name: "edit", arguments: { path: "a", old: "one", new: "two" } }], {
    plugins: [workspace(busy)],
  });
  expect(result).toContain("it has changed meanwhile; read it again");
  expect(readFileSync(join(root, "a"), "utf8")).toBe("one, saved by a person");
});

test("of ten thousand files glob shows a thousand, and counts the rest", async () => {
  const many = Array.from({ length: 10_000 }, (_, index) => ({ name: `f${index}.ts`, kind: "file" as const, size: 1 }));
  const files: WorkspaceFiles = {
    name: "many",
    list: async () => many,
    read: async () => Buffer.from("x"),
    write: async () => undefined,
  };
  const [found, up] = await resultsOf(
    [
      { name: "glob", arguments: { pattern: "**/*.ts" } },
      { name: "glob", arguments: { pattern: "../**" } },
    ],
    { plugins: [workspace(files)] },
  );
  expect(found?.split("\n")).toHaveLength(1_001);
  expect(found).toMatch(/\n… and 9000 more$/);
  expect(up).toBe("No file matches.");
});

test("a hostile pattern is refused without blocking the event loop", async () => {
  const root = emptyFolder();
  writeFileSync(join(root, "a"), `${"a".repeat(60)}!\n`.repeat(50));
  let longest = 0;
  let last = performance.now();
  const tick = setInterval(() => {
    longest = Math.max(longest, performance.now() - last);
    last = performance.now();
  }, 5);
  const results = await resultsOf(
    [
      { name: "grep", arguments: { pattern: "^(a+)+$" } },
      { name: "grep", arguments: { pattern: "(" } },
      { name: "glob", arguments: { pattern: "*a*a*a*a*a*a*a*a*a*a*a*a*b" } },
      { name: "grep", arguments: { pattern: "a!$", limit: 2 } },
    ],
    { plugins: [workspace(folder(root))] },
  );
  clearInterval(tick);
  expect(results[0]).toContain("The pattern takes too long to search with");
  expect(results[1]).toContain("The pattern is invalid");
  expect(results[2]).toBe("No file matches.");
  expect(results[3]).toMatch(/^a:1: a+!\na:2: a+!\n\[The search is incomplete/);
  expect(longest).toBeLessThan(1_000);
});

test("files in artifactFiles() survive a restart in the stores, and belong to one agent", async () => {
  const stores = memoryStores();
  const equipment = { plugins: [workspace(artifactFiles())], runtime: { stores } };
  await resultsOf([write("a/b", "kept")], equipment);
  expect(await resultsOf([read("a/b")], equipment)).toEqual(["1\tkept"]);
  const [other] = await resultsOf([read("a/b")], { ...equipment, agentId: "clerk-2" });
  expect(other).toContain("there is no such file");
});

describeRuntimes("an edit whose process ends", (stage) => {
  const model = scriptedModel(({ messages }) => {
    if (messages.at(-1)?.role === "tool") return "Done.";
    return { toolCalls: [{ name: "edit", arguments: { path: "a", old: "one", new: "two" } }] };
  });
  const definitionOf = (files: WorkspaceFiles) => defineAgent({ name: "clerk", model, plugins: [workspace(files)] });

  test.each([
    { when: "before the change", takesEffect: false },
    { when: "after the change", takesEffect: true },
  ])("$when: the next process looks, and the file is edited once", async ({ takesEffect }) => {
    const root = emptyFolder();
    writeFileSync(join(root, "a"), "one");
    const real = folder(root);
    const reached = Promise.withResolvers<void>();
    const dying: WorkspaceFiles = {
      ...real,
      async write(path, content, run) {
        if (takesEffect) await real.write(path, content, run);
        reached.resolve();
        await new Promise(() => undefined);
      },
    };
    const doomed = await stage().openProcess({ agents: [definitionOf(dying)] });
    const before = await doomed.runtime.agent("clerk", { agentId: "clerk-1" });
    await before.start();
    before.executeTurn("Edit.");
    await reached.promise;
    doomed.kill();
    stage().expireLeases();
    let writes = 0;
    const counting: WorkspaceFiles = {
      ...real,
      async write(path, content, run) {
        writes += 1;
        await real.write(path, content, run);
      },
    };
    const survivor = await stage().open({ agents: [definitionOf(counting)] });
    const agent = await survivor.find("clerk-1");
    await survivor.recover();
    expect((await agent.turn("clerk-1#1").result).text).toBe("Done.");
    expect(await toolTextsOf(agent)).toEqual([takesEffect ? "Edited a." : "Edited a at line 1."]);
    expect(writes).toBe(takesEffect ? 0 : 1);
    expect(readFileSync(join(root, "a"), "utf8")).toBe("two");
  });
});

test("effect classes, and a workspace that only reads", () => {
  const effects = (workspace(folder(emptyFolder())).tools as readonly AgentTool[]).map(
    ({ name, effect }) => `${name} ${effect}`,
  );
  expect(effects).toEqual(["ls none", "read none", "glob none", "grep none", "write keyed", "edit once"]);
  const internal = workspace(artifactFiles()).tools as readonly AgentTool[];
  expect(internal.every(({ effect }) => effect === "none")).toBe(true);
  const reading = workspace(artifactFiles(), { write: false, prefix: "docs_" });
  expect([reading.name, ...(reading.tools?.map(({ name }) => name) ?? [])]).toEqual([
    "docs_workspace",
    "docs_ls",
    "docs_read",
    "docs_glob",
    "docs_grep",
  ]);
});
