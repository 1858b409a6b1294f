import { execFile } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, renameSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { onceAMachine } from "./once-a-machine.ts";

const run = promisify(execFile);

/** The program and arguments that start `redis-server` on this machine. */
export interface RedisProgram {
  readonly path: string;
  readonly environment: Readonly<Record<string, string>>;
}

const PACKAGE = "redis-server";
const cache = join(tmpdir(), `troupe-redis-${process.getuid?.() ?? "user"}`);

/**
 * `redis-server` from PATH; otherwise the Debian packages, unpacked into a folder of the temporary directory, once per machine.
 * Nothing is installed and no service is started. `undefined`, with a printed hint, if neither is available.
 */
export async function findRedis(): Promise<RedisProgram | undefined> {
  const known = onPath() ?? unpacked();
  if (known) return known;
  try {
    await onceAMachine(cache, () => unpacked() !== undefined, unpack);
  } catch (error) {
    const why = error instanceof Error ? error.message.split("\n")[0] : String(error);
    process.stderr.write(
      `redis-server is not on PATH and could not be fetched with apt-get (${why}). Install Redis 6.2 or later, for instance with "apt-get install redis-server" or "brew install redis"; the tests that need it are skipped.\n`,
    );
  }
  return unpacked();
}

function onPath(): RedisProgram | undefined {
  const folder = (process.env["PATH"] ?? "").split(delimiter).find((one) => existsSync(join(one, PACKAGE)));
  return folder === undefined ? undefined : { path: join(folder, PACKAGE), environment: {} };
}

function unpacked(): RedisProgram | undefined {
  const root = join(cache, "root");
  const path = join(root, "usr/bin", PACKAGE);
  if (!existsSync(path)) return undefined;
  const libraries = join(root, "usr/lib");
  const folders = readdirSync(libraries).map((name) => join(libraries, name));
  return { path, environment: { LD_LIBRARY_PATH: folders.join(delimiter) } };
}

async function unpack(): Promise<void> {
  const fetched = join(cache, "fetched");
  mkdirSync(fetched, { recursive: true });
  try {
    await download(fetched);
  } catch {
    // The package lists may be missing or too old.
    await run("apt-get", ["update", "-qq"]);
    await download(fetched);
  }
  const root = join(cache, "unpacking");
  for (const name of readdirSync(fetched)) await run("dpkg", ["-x", join(fetched, name), root]);
  renameSync(root, join(cache, "root"));
}

/** The package with its dependencies that are not on this machine. */
async function download(folder: string): Promise<void> {
  const { stdout } = await run("apt-get", ["install", "--simulate", PACKAGE]);
  const names = [...stdout.matchAll(/^Inst (\S+)/gm)].flatMap(([, name]) => name ?? []);
  await run("apt-get", ["download", ...names], { cwd: folder });
}
