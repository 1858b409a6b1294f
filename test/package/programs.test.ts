// Programs of the built package: the examples, and the commands.
import { cpSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { repositoryRoot, runCommand } from "../../scripts/run-command.ts";
import { every, rows } from "../support/full.ts";
import { programTimeoutMs } from "../support/programs.ts";
import { type BuiltPackage, buildPackage } from "./built-package.ts";

const examples = readdirSync(join(repositoryRoot, "examples")).filter((name) => name.endsWith(".ts"));
const guard = pathToFileURL(join(repositoryRoot, "test", "support", "offline.ts")).href;

let built: BuiltPackage;
beforeAll(async () => {
  built = await buildPackage();
  cpSync(join(repositoryRoot, "examples"), join(built.root, "examples"), { recursive: true });
});
afterAll(() => built.remove());

/** Runs Node in a folder of the package, without a network and without a key. */
function runOffline(words: readonly string[], folder: string) {
  return runCommand("node", words, {
    directory: folder,
    timeoutMs: programTimeoutMs,
    environment: {
      NODE_OPTIONS: `--import=${guard}`,
      OPENAI_API_KEY: "",
      OPENAI_BASE_URL: "",
      npm_lifecycle_event: "",
    },
  });
}

test.each(rows(examples, every(6)))("examples/%s", async (name) => {
  const folder = join(built.root, `of-${name}`);
  mkdirSync(folder);
  const result = await runOffline([join(built.root, "examples", name)], folder);
  expect(result.ok, result.output).toBe(true);
  expect(result.stdout.trim()).not.toBe("");
});

describe("the command line", () => {
  let folder: string;
  const troupe = (...words: readonly string[]) =>
    runOffline([join(built.root, "dist", "cli", "main.js"), ...words], folder);

  beforeAll(() => {
    folder = join(built.root, "work");
    mkdirSync(join(folder, "notes"), { recursive: true });
    writeFileSync(join(folder, "notes", "key.md"), "# The key\n\nThe key of the shed hangs behind the door.\n");
    writeFileSync(
      join(folder, "clerk.ts"),
      'import { defineAgent, offlineModel } from "troupe";\nexport default defineAgent({ name: "clerk", model: offlineModel() });\n',
    );
  });

  test("prints the version of the package", async () => {
    expect((await troupe("--version")).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
  });

  test("asks a team, and shows, lists and exports the run", async () => {
    const asked = await troupe("ask", "--files", "notes", "--question", "Where does the key hang?");
    expect(asked.ok, asked.output).toBe(true);
    expect(asked.stdout).toContain("behind the door");
    const [, agentId = "none"] = /npx troupe show (ask-\w+)$/m.exec(asked.stdout) ?? [];
    expect((await troupe("show", agentId)).stdout).toContain("Where does the key hang?");
    expect((await troupe("list")).stdout).toContain(agentId);
    expect((await troupe("requests")).ok).toBe(true);
    const exported = await troupe("export", agentId, "--html", "run.html");
    expect(exported.ok, exported.output).toBe(true);
  });

  test("runs an agent file, whose troupe is this package", async () => {
    const ran = await troupe("run", "./clerk.ts", "The key hangs behind the door. Where is the key?");
    expect(ran.ok, ran.output).toBe(true);
    expect(ran.stdout).toContain("behind the door");
  });

  test("refuses invalid input, in one line", async () => {
    const { ok, output } = await troupe("show", "nobody");
    expect(ok).toBe(false);
    expect(output).toMatch(/nobody/);
    expect(output).not.toMatch(/^ {4}at /m);
  });
});
