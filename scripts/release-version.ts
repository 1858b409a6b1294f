// Raises the version according to the changesets and moves their lines into CHANGELOG.md. The release workflow runs it.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { releasedChangelog } from "./changelog.ts";
import { readManifest } from "./manifest.ts";
import { repositoryRoot, runCommand } from "./run-command.ts";

const changelog = join(repositoryRoot, "CHANGELOG.md");
const before = readFileSync(changelog, "utf8");
const old = readManifest().version;
const { ok, output } = await runCommand("changeset", ["version"]);
process.stdout.write(output);
const { version } = readManifest();
if (!ok) process.exitCode = 1;
else if (version !== old) {
  const date = new Date().toISOString().slice(0, 10);
  writeFileSync(changelog, releasedChangelog(before, readFileSync(changelog, "utf8"), version, date));
  const lockPath = join(repositoryRoot, "package-lock.json");
  const lock = JSON.parse(readFileSync(lockPath, "utf8")) as { version: string; packages: { "": { version: string } } };
  // `create-troupe` runs the `init` of exactly this version.
  const creatorPath = join(repositoryRoot, "packages", "create-troupe", "package.json");
  const creator = JSON.parse(readFileSync(creatorPath, "utf8")) as { dependencies: Record<string, string> };
  const raised = { ...creator, version, dependencies: { ...creator.dependencies, troupe: version } };
  writeFileSync(creatorPath, `${JSON.stringify(raised, null, 2)}\n`);
  lock.version = version;
  lock.packages[""].version = version;
  writeFileSync(lockPath, `${JSON.stringify(lock, null, 2)}\n`);
}
