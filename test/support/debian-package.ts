import { execFile } from "node:child_process";
import { mkdirSync, readdirSync, renameSync } from "node:fs";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

/** Unpacks a Debian package with its missing dependencies into `root` within a folder. Nothing is installed. */
export async function unpackDebian(name: string, folder: string): Promise<void> {
  const fetched = join(folder, "fetched");
  mkdirSync(fetched, { recursive: true });
  try {
    await download(name, fetched);
  } catch {
    // The package lists may be missing or too old.
    await run("apt-get", ["update", "-qq"]);
    await download(name, fetched);
  }
  const root = join(folder, "unpacking");
  for (const file of readdirSync(fetched)) await run("dpkg", ["-x", join(fetched, file), root]);
  renameSync(root, join(folder, "root"));
}

/** The environment in which programs of unpacked packages find their libraries. */
export function libraryPath(root: string): Readonly<Record<string, string>> {
  const libraries = join(root, "usr/lib");
  const folders = readdirSync(libraries).map((name) => join(libraries, name));
  return { LD_LIBRARY_PATH: folders.join(delimiter) };
}

/** The package with its dependencies that are not on this machine. */
async function download(name: string, folder: string): Promise<void> {
  const { stdout } = await run("apt-get", ["install", "--simulate", name]);
  const names = [...stdout.matchAll(/^Inst (\S+)/gm)].flatMap(([, one]) => one ?? []);
  await run("apt-get", ["download", ...names], { cwd: folder });
}
