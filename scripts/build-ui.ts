// Builds the inspector's page: src/inspector/ui to one script and one style in src/inspector/assets.
import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { build } from "vite";
import { repositoryRoot } from "./run-command.ts";

const ui = join(repositoryRoot, "src", "inspector", "ui");
const assets = join(repositoryRoot, "src", "inspector", "assets");
/** Of script and style, packed by gzip. */
const MOST_BYTES = 80 * 1024;
/** What is bundled, whose licences lie beside it. */
const bundled = ["preact", "@preact/signals", "@preact/signals-core"];

// A test runner may have set another mode, in which the page would hold paths of this machine.
process.env["NODE_ENV"] = "production";
rmSync(assets, { recursive: true, force: true });
mkdirSync(assets, { recursive: true });
await build({
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
      input: join(ui, "main.tsx"),
      output: { entryFileNames: "app.js", assetFileNames: "app[extname]", codeSplitting: false },
    },
  },
});
const licences = bundled.map((name) => `${name}\n\n${licenceOf(name)}`);
writeFileSync(join(assets, "LICENSES.txt"), licences.join("\n\n"));

const bytes = ["app.js", "app.css"].map((name) => gzipSync(readFileSync(join(assets, name))).length);
const total = bytes.reduce((sum, one) => sum + one, 0);
const sizes = `app.js ${kilobytes(bytes[0])}, app.css ${kilobytes(bytes[1])} packed`;
process.stdout.write(`Built the inspector's page: ${sizes}\n`);
if (total > MOST_BYTES) {
  process.stderr.write(`The page takes ${total} bytes packed, more than ${MOST_BYTES}.\n`);
  process.exitCode = 1;
}

function licenceOf(name: string): string {
  const path = join(repositoryRoot, "node_modules", name, "LICENSE");
  return statSync(path, { throwIfNoEntry: false })?.isFile() === true ? readFileSync(path, "utf8") : "MIT";
}

function kilobytes(amount = 0): string {
  return `${(amount / 1024).toFixed(1)} KB`;
}
