/**
 * Checks the packed package on the given Node, Bun or Deno: it is installed in a new project, and the checks of scripts/runtimes/checks.ts run
 * there. With `--examples` all examples run there too.
 *
 *     node scripts/runtime-check.ts node                              # from PATH
 *     node scripts/runtime-check.ts --package bun@1.4.5 bun           # from an npm package, installed for this run
 *     node scripts/runtime-check.ts --only worker --package deno@2 deno   # the checks whose title contains a text
 *
 * Redis and Postgres are started for the run if the machine has their programs, or Debian's packages can be fetched; otherwise the checks that
 * need them are skipped, and a line names them.
 */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { PostgresServer, postgresProgram } from "../test/support/postgres-server.ts";
import { redisProgram, RedisServer } from "../test/support/redis-server.ts";
import { repositoryRoot, runCommand } from "./run-command.ts";
import { type Check, type CheckContext, checks } from "./runtimes/checks.ts";
import { createConsumer } from "./runtimes/consumer.ts";
import type { Runtime, RuntimeName } from "./runtimes/runtime.ts";

/** The arguments before the file. */
const runtimes: Readonly<Record<RuntimeName, readonly string[]>> = {
  node: [],
  bun: ["run"],
  deno: ["run", "--allow-all", "--node-modules-dir=manual"],
};

const exampleTimeoutMs = 60_000;

const { values, positionals } = parseArgs({
  options: { package: { type: "string" }, only: { type: "string" }, examples: { type: "boolean", default: false } },
  allowPositionals: true,
});

function isRuntime(name: string): name is RuntimeName {
  return Object.hasOwn(runtimes, name);
}

/** Installs an npm package into a folder and returns its command. */
async function install(folder: string, name: RuntimeName, spec: string): Promise<string> {
  const { ok, output } = await runCommand("npm", ["install", "--prefix", folder, "--no-audit", "--no-fund", spec]);
  const [command] = [join("node_modules", name, "bin", name), join("node_modules", ".bin", name)]
    .map((path) => join(folder, path))
    .filter((path) => existsSync(path));
  if (!ok || command === undefined) throw new Error(`${spec} cannot be installed:\n${output}`);
  return command;
}

async function runtimeAt(name: RuntimeName, command: string): Promise<Runtime> {
  const { ok, stdout, output } = await runCommand(command, ["--version"]);
  if (!ok) {
    throw new Error(
      `${output.trimEnd()}\nInstall ${name}, or name an npm package that contains it: --package ${name}@latest`,
    );
  }
  const [version = "unknown"] = /\d+\.\d+\.\d+/.exec(stdout) ?? [];
  return { name, command, before: runtimes[name], version };
}

/** The message of an error, `undefined` if there is none. */
async function errorOf(check: Check, context: CheckContext): Promise<string | undefined> {
  try {
    await check.run(context);
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

type Outcome = "works" | "lacks" | "skipped" | "FAILED";

async function outcomeOf(check: Check, context: CheckContext): Promise<{ outcome: Outcome; why: string }> {
  const { runtime, redisUrl, postgresUrl } = context;
  if (check.on?.includes(runtime.name) === false) return { outcome: "skipped", why: `not for ${runtime.name}` };
  if (check.needs === "redis" && redisUrl === undefined) return { outcome: "skipped", why: "redis-server is missing" };
  if (check.needs === "postgres" && postgresUrl === undefined)
    return { outcome: "skipped", why: "Postgres is missing" };
  const error = await errorOf(check, context);
  const expected = isExpectedToFail(runtime) ? check.fails?.[runtime.name] : undefined;
  if (expected === undefined) return { outcome: error === undefined ? "works" : "FAILED", why: error ?? "" };
  if (error === undefined)
    return { outcome: "FAILED", why: `works now: remove the exception, also in docs/runtimes.md` };
  return expected.test(error) ? { outcome: "lacks", why: "as documented" } : { outcome: "FAILED", why: error };
}

/** The only exception of Node is of the versions before 22.18. */
function isExpectedToFail({ name, version }: Runtime): boolean {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return name !== "node" || (major === 22 && minor < 18);
}

async function runExamples(runtime: Runtime, project: string, redisUrl: string | undefined): Promise<number> {
  const flags = isExpectedToFail(runtime) && runtime.name === "node" ? ["--experimental-strip-types"] : [];
  let failed = 0;
  for (const example of readdirSync(join(project, "examples")).filter((file) => file.endsWith(".ts"))) {
    const folder = join(project, `of-${example}`);
    mkdirSync(folder);
    const words = [...runtime.before, ...flags, join(project, "examples", example)];
    const { ok, stdout, output } = await runCommand(runtime.command, words, {
      directory: folder,
      timeoutMs: exampleTimeoutMs,
      environment: {
        NODE_OPTIONS: "",
        OPENAI_API_KEY: "",
        OPENAI_BASE_URL: "",
        npm_lifecycle_event: "",
        ...(redisUrl !== undefined && { REDIS_URL: redisUrl }),
      },
    });
    const works = ok && stdout.trim() !== "";
    if (!works) failed += 1;
    process.stdout.write(works ? `works    examples/${example}\n` : `FAILED   examples/${example}\n${output}\n`);
  }
  return failed;
}

async function main(name: RuntimeName): Promise<number> {
  mkdirSync(join(repositoryRoot, ".troupe"), { recursive: true });
  // Inside the repository, where the examples find the packages that they show.
  const root = mkdtempSync(join(repositoryRoot, ".troupe", "runtime-"));
  const redis = redisProgram === undefined ? undefined : await RedisServer.start();
  const postgres = postgresProgram === undefined ? undefined : await PostgresServer.start();
  try {
    const command = values.package === undefined ? name : await install(join(root, "runtime"), name, values.package);
    const runtime = await runtimeAt(name, command);
    const node = await runtimeAt("node", process.execPath);
    const project = join(root, "consumer");
    await createConsumer(project);
    const counts: Record<Outcome, number> = { works: 0, lacks: 0, skipped: 0, FAILED: 0 };
    for (const [index, check] of checks.entries()) {
      if (!check.title.includes(values.only ?? "")) continue;
      const folder = join(root, `check-${index}`);
      mkdirSync(folder);
      const started = performance.now();
      const context = { runtime, node, project, folder, redisUrl: redis?.url, postgresUrl: postgres?.url };
      const { outcome, why } = await outcomeOf(check, context);
      counts[outcome] += 1;
      const seconds = ((performance.now() - started) / 1000).toFixed(1);
      process.stdout.write(`${outcome.padEnd(8)} ${check.title} (${seconds} s)${why === "" ? "" : `: ${why}`}\n`);
    }
    if (values.examples) counts.FAILED += await runExamples(runtime, project, redis?.url);
    const { works, lacks, skipped, FAILED: failed } = counts;
    process.stdout.write(
      `${name} ${runtime.version}: ${works} work, ${lacks} lacking as documented, ${skipped} skipped, ${failed} failed\n`,
    );
    return failed === 0 ? 0 : 1;
  } finally {
    await redis?.stop();
    await postgres?.stop();
    rmSync(root, { recursive: true, force: true });
  }
}

const [name = ""] = positionals;
if (isRuntime(name)) {
  process.exitCode = await main(name);
} else {
  process.stderr.write("Usage: npm run check:runtime -- [--package SPEC] [--only TEXT] [--examples] node|bun|deno\n");
  process.exitCode = 2;
}
