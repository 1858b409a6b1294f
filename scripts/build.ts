/**
 * Builds the package: its code, its types and the inspector's page. It does not check types (`npm run check:types` does),
 * so that `npm pack`, which runs the build, stays fast.
 *
 *     node scripts/build.ts                     # into dist
 *     node scripts/build.ts --code --to FOLDER  # only the code, into FOLDER/dist, with the files that it reads
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

/** Writes a declaration for each source that types of the entries refer to. They are not used at run time. */
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
    for (const name of ["package.json", "README.md", "docs", "templates"]) {
      cpSync(join(repositoryRoot, name), join(root, name), { recursive: true });
    }
  }
} catch (error) {
  if (!(error instanceof BuildFault)) throw error;
  process.stdout.write(error.message);
  process.exitCode = 1;
}
