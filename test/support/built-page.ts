import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { repositoryRoot, runCommand } from "../../scripts/run-command.ts";

const inspector = join(repositoryRoot, "src", "inspector");

/** Builds the inspector's page before the tests if its sources are newer. */
export async function setup(): Promise<void> {
  if (newestIn("ui", "run-model") <= newestIn("assets")) return;
  const { ok, output } = await runCommand("node", ["scripts/build-ui.ts"]);
  if (!ok) throw new Error(`the inspector's page cannot be built:\n${output}`);
}

function newestIn(...folders: readonly string[]): number {
  const files = folders.flatMap((folder) => {
    const path = join(inspector, folder);
    if (statSync(path, { throwIfNoEntry: false }) === undefined) return [];
    return readdirSync(path, { recursive: true, encoding: "utf8" }).map((name) => join(path, name));
  });
  return Math.max(0, ...files.map((path) => statSync(path).mtimeMs));
}
