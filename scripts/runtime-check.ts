/**
 * Runs the examples with the built package on the given Node, Bun or Deno, and prints which of them work.
 *
 *     node scripts/runtime-check.ts node                        # from PATH
 *     node scripts/runtime-check.ts --package bun@1.4.5 bun     # from an npm package, installed for this run
 *
 * With REDIS_URL, examples that can use Redis use that one.
 */
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { repositoryRoot, runCommand } from "./run-command.ts";

/** The arguments before the file, by command name. */
const runtimes: Readonly<Record<string, readonly string[]>> = {
  node: [],
  bun: ["run"],
  deno: ["run", "--allow-all", "--node-modules-dir=manual"],
};

const programTimeoutMs = 60_000;

const { values, positionals } = parseArgs({ options: { package: { type: "string" } }, allowPositionals: true });
const [name = ""] = positionals;
const words = runtimes[name];

/** Installs an npm package into a folder and returns its command. */
async function install(folder: string, spec: string): Promise<string> {
  const { ok, output } = await runCommand("npm", ["install", "--prefix", folder, "--no-audit", "--no-fund", spec]);
  const [command] = [join("node_modules", name, "bin", name), join("node_modules", ".bin", name)]
    .map((path) => join(folder, path))
    .filter((path) => existsSync(path));
  if (!ok || command === undefined) throw new Error(`${spec} cannot be installed:\n${output}`);
  return command;
}

async function main(before: readonly string[]): Promise<number> {
  mkdirSync(join(repositoryRoot, ".troupe"), { recursive: true });
  const root = mkdtempSync(join(repositoryRoot, ".troupe", "runtime-"));
  try {
    const command = values.package === undefined ? name : await install(join(root, "runtime"), values.package);
    const version = await runCommand(command, ["--version"]);
    const built = await runCommand("node", ["scripts/build.ts", "--code", "--to", root]);
    if (!built.ok) throw new Error(`The package cannot be built:\n${built.output}`);
    cpSync(join(repositoryRoot, "examples"), join(root, "examples"), { recursive: true });
    let failed = 0;
    let passed = 0;
    for (const example of readdirSync(join(root, "examples")).filter((file) => file.endsWith(".ts"))) {
      const folder = join(root, `of-${example}`);
      mkdirSync(folder);
      const { ok, stdout, output } = await runCommand(command, [...before, join(root, "examples", example)], {
        directory: folder,
        timeoutMs: programTimeoutMs,
        environment: { NODE_OPTIONS: "", OPENAI_API_KEY: "", OPENAI_BASE_URL: "", npm_lifecycle_event: "" },
      });
      const works = ok && stdout.trim() !== "";
      if (works) passed += 1;
      else failed += 1;
      process.stdout.write(works ? `works   ${example}\n` : `FAILED  ${example}\n${output}\n`);
    }
    process.stdout.write(`${name} ${version.stdout.trim().split("\n")[0]}: ${passed} work, ${failed} failed\n`);
    return failed === 0 ? 0 : 1;
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

if (words === undefined) {
  process.stderr.write("Usage: npm run check:runtime -- [--package SPEC] node|bun|deno\n");
  process.exitCode = 2;
} else {
  process.exitCode = await main(words);
}
