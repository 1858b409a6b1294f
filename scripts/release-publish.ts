// Publishes the package and, after it, create-troupe of the same version. The release workflow runs it.
import { join } from "node:path";
import { readManifest } from "./manifest.ts";
import { repositoryRoot, runCommand } from "./run-command.ts";

const { version } = readManifest();

/** Runs a command and prints its output; false if it failed. */
async function run(command: string, ...words: readonly string[]): Promise<boolean> {
  const { ok, output } = await runCommand(command, words);
  process.stdout.write(output);
  if (!ok) process.exitCode = 1;
  return ok;
}

if (await run("changeset", "publish")) {
  // Of every push without changesets only the first one after a release has something to publish.
  const published = await runCommand("npm", ["view", `create-troupe@${version}`, "version"]);
  if (published.stdout.trim() !== version)
    await run("npm", "publish", join(repositoryRoot, "packages", "create-troupe"));
}
