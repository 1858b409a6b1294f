import { existsSync, lstatSync, readdirSync, readFileSync } from "node:fs";
import { isBuiltin } from "node:module";
import { dirname, join } from "node:path";
import { packageOf } from "./bundle.ts";
import type { Manifest } from "./manifest.ts";
import { moduleSpecifiers } from "./module-specifiers.ts";

/** Most bytes of the package's files: 3.6 MB are code, 1.5 declarations, 1.1 documents and examples, 0.5 the inspector's page. */
const mostPackedBytes = 7_200_000;
/** Most disk space of the package and its dependencies: 35 MiB are `openai`, 30 `gpt-tokenizer`. */
const mostInstalledBytes = 110 * 1024 * 1024;

/** The faults of an installed package and its dependencies, one line each. */
export function contentFaults(installed: string, manifest: Manifest): string[] {
  const files = filesIn(installed);
  return [...strayFiles(files), ...sizeFaults(installed, files), ...linkFaults(installed, files)].concat(
    importFaults(installed, files, manifest),
    browserFaults(installed),
  );
}

/**
 * Entries for browsers, without Node and the runtime. They and their imports must be small and may load only these modules.
 */
const browserEntries: readonly string[] = ["dist/client/index.js", "dist/client/react.js"];
const browserPackages: readonly string[] = ["eventsource-parser", "react"];
const mostBrowserBytes = 40_000;

function browserFaults(installed: string): string[] {
  const seen = new Set(browserEntries);
  const faults: string[] = [];
  for (const path of seen) {
    for (const { name } of moduleSpecifiers(path, readFileSync(join(installed, path), "utf8"))) {
      if (name.startsWith(".")) seen.add(join(dirname(path), name).replaceAll("\\", "/"));
      else if (!browserPackages.includes(name)) faults.push(`${path} imports ${name}, which browsers do not have`);
    }
  }
  const bytes = [...seen].reduce((sum, path) => sum + lstatSync(join(installed, path)).size, 0);
  if (bytes <= mostBrowserBytes) return faults;
  return [
    ...faults,
    `the entries for browsers are ${bytes} bytes, more than ${mostBrowserBytes}: ${[...seen].join(", ")}`,
  ];
}

function filesIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((path) => lstatSync(join(folder, path)).isFile())
    .map((path) => path.replaceAll("\\", "/"));
}

function strayFiles(files: readonly string[]): string[] {
  const places =
    /^(?:dist\/.+|docs\/.+\.md|examples\/(?:(?:served|teal|browser|evals|wire-formats)\/)?[^/]+\.(?:ts|tsx|html|yaml|json)|examples\/served\/Dockerfile|templates\/.+|bench\/README\.md|skills\/troupe\/SKILL\.md|AGENTS\.md|llms\.txt|CHANGELOG\.md|CODE_OF_CONDUCT\.md|CONTRIBUTING\.md|README\.md|SECURITY\.md|LICENSE|package\.json)$/;
  return files
    .filter(
      (path) => !places.test(path) || (/^dist\/.+\.ts$/.test(path) && !path.endsWith(".d.ts")) || path.endsWith(".map"),
    )
    .map((path) => `${path} does not belong in the package`);
}

function sizeFaults(installed: string, files: readonly string[]): string[] {
  const packed = files.map((path) => ({ path, bytes: lstatSync(join(installed, path)).size }));
  const total = packed.reduce((sum, { bytes }) => sum + bytes, 0);
  const faults: string[] = [];
  if (total > mostPackedBytes) {
    const largest = packed.toSorted((left, right) => right.bytes - left.bytes).slice(0, 5);
    const names = largest.map(({ path, bytes }) => `${path} (${bytes})`).join(", ");
    faults.push(`the package is ${total} bytes unpacked, more than ${mostPackedBytes}; its largest files: ${names}`);
  }
  const disk = installedBytes(dirname(installed));
  if (disk > mostInstalledBytes) faults.push(`${disk} bytes are installed, more than ${mostInstalledBytes}`);
  return faults;
}

/** Disk space of a folder, as counted by `du`. */
export function installedBytes(folder: string): number {
  return readdirSync(folder, { recursive: true, encoding: "utf8" }).reduce(
    (sum, path) => sum + lstatSync(join(folder, path)).blocks * 512,
    0,
  );
}

/** Links in documents must lead to files in the package, except pictures, which are left out because of their size. */
function linkFaults(installed: string, files: readonly string[]): string[] {
  return files
    .filter((path) => path.endsWith(".md"))
    .flatMap((path) =>
      [...readFileSync(join(installed, path), "utf8").matchAll(/(?<!!\[[^\]]*)\]\((?!https?:|mailto:|#)([^)#\s]+)/g)]
        .map(([, target = ""]) => target)
        .filter((target) => !existsSync(join(installed, dirname(path), target)))
        .map((target) => `${path} points to ${target}, which is not in the package`),
    );
}

/** Every imported module must be our own, Node's, or a dependency in package.json. */
function importFaults(installed: string, files: readonly string[], manifest: Manifest): string[] {
  const known = new Set([
    manifest.name,
    ...Object.keys(manifest.dependencies),
    ...Object.keys(manifest.peerDependencies ?? {}),
  ]);
  return files
    .filter((path) => path.endsWith(".js"))
    .flatMap((path) =>
      moduleSpecifiers(path, readFileSync(join(installed, path), "utf8"))
        .filter(({ name }) => !name.startsWith(".") && !isBuiltin(name) && !known.has(packageOf(name)))
        .map(({ name }) => `${path} imports ${name}, which package.json does not name as a dependency`),
    );
}
