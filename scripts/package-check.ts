/**
 * Checks the packed package with publint (fields of package.json, files, formats), with Are The Types Wrong (the types that
 * TypeScript finds for each entry in each resolution mode), and against the API report.
 *
 *     node scripts/package-check.ts           # builds the package first
 *     node scripts/package-check.ts --built   # uses the existing dist
 */
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { runCommand } from "./run-command.ts";

const { values } = parseArgs({ options: { built: { type: "boolean", default: false } } });
const folder = mkdtempSync(join(tmpdir(), "troupe-package-"));

class CheckFault extends Error {}

async function run(purpose: string, command: string, ...words: readonly string[]): Promise<void> {
  const { ok, output } = await runCommand(command, words);
  if (!ok) throw new CheckFault(`${purpose}:\n${output}`);
}

try {
  if (!values.built) await run("The package cannot be built", "node", "scripts/build.ts");
  await run("npm pack failed", "npm", "pack", "--ignore-scripts", "--pack-destination", folder);
  const tarball = readdirSync(folder).find((name) => name.endsWith(".tgz"));
  if (tarball === undefined) throw new CheckFault("npm pack left no .tgz file.");
  const packed = join(folder, tarball);
  await Promise.all([
    run("publint found faults in the package", "publint", "run", packed, "--strict"),
    // The package has only ES modules. CommonJS can load them with import(), or with require() from Node 22.12 on.
    run(
      "attw found faults in the types",
      "attw",
      packed,
      "--profile",
      "esm-only",
      "--no-definitely-typed",
      "--format",
      "ascii",
    ),
    run("The API report is not current", "node", "scripts/api-report.ts"),
  ]);
  process.stdout.write("publint and attw find no fault, and the API report is current\n");
} catch (error) {
  if (!(error instanceof CheckFault)) throw error;
  process.stderr.write(`${error.message.trimEnd()}\n`);
  process.exitCode = 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
