/**
 * Builds the package: its code, its types and the inspector's page. Types are not checked here but by `npm run check:types`, so that
 * `npm pack`, which builds, stays quick.
 *
 *     node scripts/build.ts                     # into dist
 *     node scripts/build.ts --code --to FOLDER  # the code alone, into FOLDER/dist, and beside it what it reads
 */
import { chmodSync, cpSync, existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { bundleCode } from "./bundle.ts";
import { keepReachableDeclarations } from "./declarations.ts";
import { entryFiles, readManifest } from "./manifest.ts";
import { repositoryRoot, runCommand } from "./run-command.ts";

const { values } = parseArgs({ options: { code: { type: "boolean", default: false }, to: { type: "string" } } });
const manifest = readManifest();
const root = values.to ?? repositoryRoot;
const dist = join(root, "dist");

class BuildFault extends Error {}

async function run(command: string, ...words: readonly string[]): Promise<void> {
  const { ok, output } = await runCommand(command, words);
  if (!ok) throw new BuildFault(output);
  process.stdout.write(output);
}

/** A declaration for each source to which a type of an entry refers: no program reads these while it runs. */
async function buildTypes(): Promise<void> {
  await run("tsc", "-p", "tsconfig.build.json", "--noCheck", "--emitDeclarationOnly", "--outDir", dist);
  keepReachableDeclarations(
    dist,
    entryFiles(manifest, "types").map((path) => join(root, path)),
  );
}

rmSync(dist, { recursive: true, force: true });
try {
  const besides = values.code ? [] : [run("node", "scripts/build-ui.ts"), buildTypes()];
  await Promise.all([bundleCode(manifest, dist), ...besides]);
  const page = join(repositoryRoot, "src", "inspector", "assets");
  if (existsSync(page)) cpSync(page, join(dist, "assets"), { recursive: true });
  for (const path of Object.values(manifest.bin)) chmodSync(join(root, path), 0o755);
  if (root !== repositoryRoot) {
    for (const name of ["package.json", "README.md", "docs"]) {
      cpSync(join(repositoryRoot, name), join(root, name), { recursive: true });
    }
  }
} catch (error) {
  if (!(error instanceof BuildFault)) throw error;
  process.stdout.write(error.message);
  process.exitCode = 1;
}
