import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { basename, join } from "node:path";
import { loadableEntries, type Manifest, readManifest } from "../manifest.ts";
import { repositoryRoot, runCommand } from "../run-command.ts";

const programs = join(import.meta.dirname, "programs");

async function must(purpose: string, command: string, words: readonly string[], directory: string): Promise<void> {
  const { ok, output } = await runCommand(command, words, { directory });
  if (!ok) throw new Error(`${purpose}:\n${output}`);
}

function installedVersion(name: string): string {
  const file = join(repositoryRoot, "node_modules", name, "package.json");
  return (JSON.parse(readFileSync(file, "utf8")) as Manifest).version;
}

/** The optional packages as this repository has them. */
function optionalPackages({ peerDependencies = {} }: Manifest): string[] {
  return Object.keys(peerDependencies)
    .filter((name) => name !== "vitest")
    .map((name) => `${name}@${installedVersion(name)}`);
}

/**
 * Packs the package, installs it with its optional packages in a new project, and adds the programs of the checks and the examples. The
 * programs are plain JavaScript there, because not every supported Node reads TypeScript.
 */
export async function createConsumer(project: string): Promise<void> {
  const manifest = readManifest();
  const built = join(project, "built");
  mkdirSync(built, { recursive: true });
  writeFileSync(join(project, "package.json"), JSON.stringify({ name: "consumer", private: true, type: "module" }));
  await must("The package cannot be built", "node", ["scripts/build.ts", "--code", "--to", built], repositoryRoot);
  await must("npm pack failed", "npm", ["pack", "--ignore-scripts", "--pack-destination", project], built);
  const tarball = readdirSync(project).find((name) => name.endsWith(".tgz")) ?? "none";
  const flags = ["--prefer-offline", "--no-audit", "--no-fund", "--ignore-scripts"];
  const packages = [join(project, tarball), ...optionalPackages(manifest)];
  await must("npm install of the packed file failed", "npm", ["install", ...flags, ...packages], project);
  for (const file of readdirSync(programs)) {
    const code = stripTypeScriptTypes(readFileSync(join(programs, file), "utf8"));
    writeFileSync(join(project, `${basename(file, ".ts")}.js`), code);
  }
  const entries = JSON.stringify(loadableEntries(manifest));
  writeFileSync(
    join(project, "entries.js"),
    `for (const entry of ${entries}) if (Object.keys(await import(entry)).length === 0) throw new Error(entry + " exports nothing");`,
  );
  writeFileSync(
    join(project, "entries.cjs"),
    `for (const entry of ${entries}) if (Object.keys(require(entry)).length === 0) throw new Error(entry + " exports nothing");
const { createRuntime, TroupeError } = require("troupe");
import("troupe").then((module) => {
  if (module.createRuntime !== createRuntime || module.TroupeError !== TroupeError) throw new Error("import() loads a second instance");
});
`,
  );
  writeFileSync(
    join(project, "clerk.js"),
    'import { defineAgent, offlineModel } from "troupe";\nexport default defineAgent({ name: "clerk", model: offlineModel() });\n',
  );
  cpSync(join(repositoryRoot, "examples"), join(project, "examples"), { recursive: true });
}
