import { existsSync, globSync, mkdirSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { repositoryRoot, runCommand } from "../../scripts/run-command.ts";
import { onceAMachine } from "./once-a-machine.ts";

/** The base path of the site that tests read: not the root, so that an address without it leads nowhere. */
export const siteBase = "/troupe/";

const cache = join(repositoryRoot, ".troupe", "site-test");
/** The static files. */
export const siteFolder = join(cache, "files");
const stamp = join(cache, "built");

const sources = [
  "*.md",
  "{bench,docs,examples}/**/*",
  "{scripts,site,src}/**/*.ts",
  "site/**/*.css",
  "package-lock.json",
  "package.json",
];

/** Milliseconds that a build may take beside other work; alone it takes half a minute. */
export const SITE_BUILD_MS = 900_000;

function isCurrent(): boolean {
  if (!existsSync(stamp)) return false;
  // Another file of this run may be reading it: a source that is saved meanwhile is for the next run.
  if (readFileSync(stamp, "utf8") === String(process.ppid)) return true;
  const built = statSync(stamp).mtimeMs;
  const files = sources.flatMap((pattern) => globSync(pattern, { cwd: repositoryRoot }));
  return files
    .filter((file) => !file.startsWith("site/pages/"))
    .every((file) => statSync(join(repositoryRoot, file)).mtimeMs <= built);
}

/** Builds the site into `siteFolder` if a source is newer. Several test files may call it at once. */
export async function buildSite(): Promise<void> {
  await onceAMachine(cache, isCurrent, async () => {
    rmSync(siteFolder, { recursive: true, force: true });
    mkdirSync(cache, { recursive: true });
    const started = new Date();
    const environment = { TROUPE_SITE_BASE: siteBase, TROUPE_SITE_FOLDER: siteFolder };
    const { ok, output } = await runCommand("node", ["scripts/build-site.ts"], {
      environment,
      timeoutMs: SITE_BUILD_MS,
    });
    if (!ok) throw new Error(`The site cannot be built:\n${output}`);
    writeFileSync(stamp, String(process.ppid));
    // What was saved during the build may not be in it.
    utimesSync(stamp, started, started);
  });
}
