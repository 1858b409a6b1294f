/**
 * Builds the inspector's page and the page of audits from src/inspector/ui: a script and a style of each in
 * src/inspector/assets.
 *
 *     node scripts/build-ui.ts
 *     node scripts/build-ui.ts --if-older  # only if a source is newer, or nothing is built yet
 */
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { gzipSync } from "node:zlib";
import type { Rolldown } from "vite";
import { repositoryRoot } from "./run-command.ts";

const inspector = join(repositoryRoot, "src", "inspector");
const ui = join(inspector, "ui");
const assets = join(inspector, "assets");
/** Most bytes of a page's script and style, compressed with gzip. */
const MOST_BYTES = 139 * 1024;
/** The bundled packages, whose licences are in the same folder. */
const bundled = [
  "preact",
  "@preact/signals",
  "@preact/signals-core",
  "@lezer/common",
  "@lezer/highlight",
  "@lezer/markdown",
  "remend",
  "@noble/hashes",
];
/** The entry of each page by the name of its files. */
const pages = { app: "main.tsx", audit: "audit/main.tsx" };

const { values } = parseArgs({ options: { "if-older": { type: "boolean", default: false } } });
if (!values["if-older"] || newestIn("ui", "run-model", "../budget", "../state") > newestIn("assets"))
  await buildPages();

async function buildPages(): Promise<void> {
  // A test runner may have set another mode, in which the page would contain local paths.
  process.env["NODE_ENV"] = "production";
  rmSync(assets, { recursive: true, force: true });
  mkdirSync(assets, { recursive: true });
  for (const [name, entry] of Object.entries(pages)) await buildPage(name, entry);
  const licences = bundled.map((name) => `${name}\n\n${licenceOf(name)}`);
  writeFileSync(join(assets, "LICENSES.txt"), licences.join("\n\n"));
}

async function buildPage(name: string, entry: string): Promise<void> {
  // Imported late, because it is heavy and not needed if the build is up to date.
  const { build } = await import("vite");
  const built = await build({
    configFile: false,
    root: ui,
    logLevel: "warn",
    mode: "production",
    define: { "process.env.NODE_ENV": '"production"' },
    build: {
      outDir: assets,
      emptyOutDir: false,
      target: "es2022",
      cssMinify: "lightningcss",
      modulePreload: false,
      reportCompressedSize: false,
      rolldownOptions: {
        input: join(ui, entry),
        // The page may import only pure code from the runtime's folders; no Node imports may remain in the bundle.
        external: /^node:/,
        output: { entryFileNames: `${name}.js`, assetFileNames: `${name}[extname]`, codeSplitting: false },
      },
    },
  });
  const files = [built].flat().flatMap((one) => ("output" in one ? one.output : []));
  const foreign = files.flatMap((file) => (file.type === "chunk" ? foreignIn(file) : []));
  if (foreign.length > 0) {
    process.stderr.write(`The page imports modules that it must not contain: ${foreign.join(", ")}.\n`);
    process.exitCode = 1;
  }
  const bytes = ["js", "css"].map((extension) => gzipSync(readFileSync(join(assets, `${name}.${extension}`))).length);
  const total = bytes.reduce((sum, one) => sum + one, 0);
  const sizes = `${name}.js ${kilobytes(bytes[0])}, ${name}.css ${kilobytes(bytes[1])} packed`;
  process.stderr.write(`Built a page of the inspector: ${sizes}\n`);
  if (total > MOST_BYTES) {
    process.stderr.write(`The page ${name} takes ${total} bytes packed, more than ${MOST_BYTES}.\n`);
    process.exitCode = 1;
  }
}

/** Node modules, and packages whose licence file is missing. */
function foreignIn({ imports, moduleIds }: Pick<Rolldown.OutputChunk, "imports" | "moduleIds">): string[] {
  const packages = moduleIds.flatMap((id) => /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(id)?.[1] ?? []);
  return [...imports, ...new Set(packages.filter((name) => !bundled.includes(name)))];
}

/** Modification time of the newest file in these folders, in milliseconds since the epoch; 0 if there are none. */
function newestIn(...folders: readonly string[]): number {
  const files = folders.flatMap((folder) => {
    const path = join(inspector, folder);
    if (statSync(path, { throwIfNoEntry: false }) === undefined) return [];
    return readdirSync(path, { recursive: true, encoding: "utf8" }).map((name) => join(path, name));
  });
  return Math.max(0, ...files.map((path) => statSync(path).mtimeMs));
}

function licenceOf(name: string): string {
  const path = join(repositoryRoot, "node_modules", name, "LICENSE");
  return statSync(path, { throwIfNoEntry: false })?.isFile() === true ? readFileSync(path, "utf8") : "MIT";
}

function kilobytes(amount = 0): string {
  return `${(amount / 1024).toFixed(1)} KB`;
}
