// `troupe init`: which names, folders and templates it takes, and that it writes everything or nothing.
import { spawn } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { readManifest } from "../../../scripts/manifest.ts";
import { commandEnvironment, repositoryRoot } from "../../../scripts/run-command.ts";
import { templates } from "../../../src/cli/init/project-templates.ts";
import { writeProject } from "../../../src/cli/init/write-project.ts";
import { startCli } from "../../e2e/cli-process.ts";
import { startOnTerminal } from "../../support/on-terminal.ts";
import { troupe } from "../support/in-process.ts";

function emptyFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "troupe-init-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

test("writes a project with its name and the versions that troupe is tested with", async () => {
  const folder = join(emptyFolder(), "shop", "desk");
  const { code, out } = await troupe(["init", folder]);
  expect(code).toBe(0);
  expect(out.join("\n")).toMatch(/cd \S+\/shop\/desk\n {2}npm install\n {2}npm start/);
  const { version } = readManifest();
  const manifest = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as Record<string, unknown>;
  expect(manifest).toMatchObject({ name: "desk", dependencies: { troupe: `^${version}` } });
  expect(JSON.stringify(manifest)).not.toContain('"*"');
  expect(readFileSync(join(folder, "README.md"), "utf8")).toMatch(/^# desk\n/);
  for (const name of [".gitignore", ".env.example", "tsconfig.json", "src/model.ts"]) {
    expect(existsSync(join(folder, name)), name).toBe(true);
  }
  expect(readdirSync(join(folder, ".."))).toEqual(["desk"]);
  expect(statSync(folder).mode & 0o777).toBe(0o777 & ~process.umask());
});

test.each([
  [["Desk"], /"Desk" is not a valid npm name: it must begin with a lowercase letter/],
  [["-desk!"], /unknown option|not a valid npm name/],
  [["a b"], /"a b" is not a valid npm name/],
  [["x".repeat(215)], /more than 214 characters/],
  [["node_modules"], /npm has reserved it/],
  [["http"], /Node has a module of this name/],
  [["zod"], /the project depends on a package zod/],
  [
    ["desk", "--template", "tem"],
    /there is no template "tem", did you mean team\?; the templates are agent, team, workers, hono, next/,
  ],
  [["desk", "--template", "toString"], /there is no template "toString"; the templates are/],
  [["."], /a project needs a folder of its own/],
  [[" "], /must not be empty/],
])("refuses %j, and writes nothing", async (words, message) => {
  const folder = emptyFolder();
  const { code, stderr } = await startCli(folder, ["init", ...words]).ended;
  expect(code).toBe(2);
  expect(stderr).toMatch(message);
  expect(readdirSync(folder)).toEqual([]);
});

test("refuses a folder that is not empty and a file, and takes an empty folder", async () => {
  const folder = emptyFolder();
  mkdirSync(join(folder, "full"));
  writeFileSync(join(folder, "full", "kept.txt"), "kept");
  writeFileSync(join(folder, "file"), "kept");
  mkdirSync(join(folder, "empty"));
  expect((await troupe(["init", join(folder, "full")])).notes.join()).toContain("is not an empty folder");
  expect((await troupe(["init", join(folder, "file")])).notes.join()).toContain("is a file");
  const below = await troupe(["init", join(folder, "file", "below")]);
  expect(below.code).toBe(2);
  expect(below.notes.join()).not.toContain("is not an empty folder");
  expect((await troupe(["init", join(folder, "empty")])).code).toBe(0);
  expect(readdirSync(join(folder, "full"))).toEqual(["kept.txt"]);
  expect(readdirSync(folder).toSorted()).toEqual(["empty", "file", "full"]);
});

test("a folder that another process has filled meanwhile is left as it is", () => {
  const folder = emptyFolder();
  mkdirSync(join(folder, "desk"));
  writeFileSync(join(folder, "desk", "theirs.txt"), "theirs");
  expect(() => writeProject(join(folder, "desk"), new Map([["mine.txt", "mine"]]))).toThrow("is not an empty folder");
  expect(readdirSync(folder)).toEqual(["desk"]);
  expect(readdirSync(join(folder, "desk"))).toEqual(["theirs.txt"]);
});

test("a process that is killed between two files leaves no half project", async () => {
  const folder = emptyFolder();
  const program = `
    import { writeProject } from ${JSON.stringify(join(repositoryRoot, "src/cli/init/write-project.ts"))};
    const files = new Map([["a.txt", "a"], ["b.txt", "b"]]);
    files[Symbol.iterator] = function* () {
      yield ["a.txt", "a"];
      process.kill(process.pid, "SIGKILL");
    };
    writeProject(${JSON.stringify(join(folder, "desk"))}, files);`;
  const child = spawn("node", ["--input-type=module", "--eval", program], {
    env: commandEnvironment(),
    stdio: "ignore",
  });
  await new Promise((resolve) => child.once("exit", resolve));
  expect(child.signalCode).toBe("SIGKILL");
  expect(existsSync(join(folder, "desk"))).toBe(false);
  expect((await troupe(["init", join(folder, "desk")])).code).toBe(0);
});

test("asks on a terminal for what is missing, again after an invalid answer", async () => {
  const folder = emptyFolder();
  const command = startOnTerminal(folder, ["init"]);
  await command.said(/Folder \(my-agent\)/);
  command.type("Desk");
  await command.said(/"Desk" is not a valid npm name/);
  command.type("desk");
  await command.said(/workers +turns and slow tools/);
  await command.said(/Template \(agent\)/);
  command.type("team");
  expect(await command.ended).toBe(0);
  expect(existsSync(join(folder, "desk", "src", "team.ts"))).toBe(true);
});

test("asks nothing with --yes, and a person who leaves the questions gets nothing", async () => {
  const folder = emptyFolder();
  expect(await startOnTerminal(folder, ["init", "--yes"]).ended).toBe(0);
  expect(readdirSync(folder)).toEqual(["my-agent"]);
  const command = startOnTerminal(folder, ["init", "other"]);
  await command.said(/Template \(agent\)/);
  command.endInput();
  expect(await command.ended).toBe(130);
  expect(readdirSync(folder)).toEqual(["my-agent"]);
});

test("the help names every template", async () => {
  const { out } = await troupe(["init", "--help"]);
  for (const name of Object.keys(templates)) expect(out.join("\n")).toContain(name);
});
