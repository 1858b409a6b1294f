// Compiles src/ to dist/. Types are not checked here but by `npm run check:types`, so that `npm ci`, which builds, stays quick.
import { chmodSync, copyFileSync, existsSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { keepReachableDeclarations } from "./declarations.ts";
import { entryFiles, readManifest } from "./manifest.ts";
import { repositoryRoot, runCommand } from "./run-command.ts";
import { vendorInto } from "./vendor.ts";

const dist = join(repositoryRoot, "dist");
const src = join(repositoryRoot, "src");
const manifest = readManifest();

/** The sources of the inspector's page, which is built into assets of its own. */
const page = join(src, "inspector", "ui");

/** tsc emits code and declarations only; pages, styles and database scripts travel as they are. */
function copyAssets(): void {
  for (const file of readdirSync(src, { recursive: true, withFileTypes: true })) {
    if (!file.isFile() || file.name.endsWith(".ts") || file.parentPath.startsWith(page)) continue;
    const source = join(file.parentPath, file.name);
    const target = join(dist, source.slice(src.length + 1));
    mkdirSync(dirname(target), { recursive: true });
    copyFileSync(source, target);
  }
}

function makeBinsExecutable(): void {
  for (const path of Object.values(manifest.bin)) {
    const file = join(repositoryRoot, path);
    if (existsSync(file)) chmodSync(file, 0o755);
  }
}

rmSync(dist, { recursive: true, force: true });
const compile = (...options: readonly string[]) =>
  runCommand("tsc", ["-p", "tsconfig.build.json", "--noCheck", ...options]);
// Comments are in the declarations, where editors show them; in the code they would be there twice.
const compiled = await Promise.all([
  runCommand("node", ["scripts/build-ui.ts"]),
  compile("--declaration", "false", "--removeComments"),
  compile("--emitDeclarationOnly"),
]);
process.stdout.write(compiled.map(({ output }) => output).join(""));
if (compiled.every(({ ok }) => ok)) {
  copyAssets();
  await vendorInto(dist);
  keepReachableDeclarations(
    dist,
    entryFiles(manifest, "types").map((path) => join(repositoryRoot, path)),
  );
  makeBinsExecutable();
} else {
  process.exitCode = 1;
}
