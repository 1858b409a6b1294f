import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { isDeepStrictEqual } from "node:util";
import { repositoryRoot, runCommand } from "../../scripts/run-command.ts";

/** Exports of modules by name. Each peer declares the ones it uses. */
export type Packages = Readonly<Record<string, unknown>>;

type Versions = Readonly<Record<string, string>>;

export interface InstallOptions {
  /** Folder of the peers, with one subfolder each. Default: `.troupe/peers` in the repository. */
  readonly root?: string;
  /** Command to run instead of `npm`. */
  readonly npm?: string;
}

/**
 * Returns the folder with exactly these versions; runs `npm install` only if they are missing. Their dependencies are the
 * newest that npm finds, and no install scripts run.
 */
export async function installPackages(name: string, wanted: Versions, options: InstallOptions = {}): Promise<string> {
  const { root = join(repositoryRoot, ".troupe", "peers"), npm = "npm" } = options;
  const folder = join(root, name);
  // Written after npm succeeded. A folder without it is an incomplete installation.
  const record = join(folder, "installed.json");
  if (isDeepStrictEqual(readIfThere(record), wanted)) return folder;
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const manifest = { private: true, type: "module", dependencies: wanted };
  writeFileSync(join(folder, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
  const args = ["install", "--prefix", folder, "--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock"];
  process.stderr.write(`--with: installs ${name} into ${folder} ...\n`);
  const { ok, output } = await runCommand(npm, args, { directory: folder });
  if (!ok) {
    const packages = Object.entries(wanted).map(([packageName, version]) => `${packageName}@${version}`);
    throw new Error(
      `--with ${name}: ${packages.join(", ")} could not be installed. Tried: ${[npm, ...args].join(" ")}\n${output.trimEnd()}\n` +
        "It needs the npm registry; without it leave out --with.",
    );
  }
  writeFileSync(record, JSON.stringify(wanted));
  return folder;
}

function readIfThere(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, "utf8"));
  } catch {
    return undefined;
  }
}

/** Imports modules as a module in that folder would. */
export async function loadPackages(folder: string, names: readonly string[]): Promise<Packages> {
  const entry = join(folder, "packages.mjs");
  writeFileSync(entry, names.map((name) => `export * as "${name}" from "${name}";\n`).join(""));
  return (await import(pathToFileURL(entry).href)) as Packages;
}
