import { execFile } from "node:child_process";
import { closeSync, existsSync, mkdirSync, openSync, readdirSync, renameSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";

const run = promisify(execFile);

/** How `redis-server` is started on this machine. */
export interface RedisProgram {
  readonly path: string;
  readonly environment: Readonly<Record<string, string>>;
}

const PACKAGE = "redis-server";
const cache = join(tmpdir(), `troupe-redis-${process.getuid?.() ?? "user"}`);
/** Longer than any fetch of it takes, in milliseconds; a lock that is older was left behind. */
const LOCK_MS = 120_000;

/**
 * `redis-server` from PATH; else the Debian packages, unpacked into a folder of the temporary directory, once a machine.
 * Nothing is installed and no service is started. Undefined, with a line that says what to do, where neither can be had.
 */
export async function findRedis(): Promise<RedisProgram | undefined> {
  const known = onPath() ?? unpacked();
  if (known) return known;
  try {
    await underLock(unpack);
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

/** Workers of one test run come here at once: one of them fetches, the others wait for it. */
async function underLock(work: () => Promise<void>): Promise<void> {
  mkdirSync(cache, { recursive: true });
  const lock = join(cache, "lock");
  for (;;) {
    if (unpacked()) return;
    try {
      closeSync(openSync(lock, "wx"));
      break;
    } catch {
      const age = Date.now() - (statSync(lock, { throwIfNoEntry: false })?.mtimeMs ?? 0);
      if (age > LOCK_MS) rmSync(lock, { force: true });
      await delay(100);
    }
  }
  try {
    if (!unpacked()) await work();
  } finally {
    rmSync(lock, { force: true });
  }
}

async function unpack(): Promise<void> {
  const fetched = join(cache, "fetched");
  mkdirSync(fetched, { recursive: true });
  try {
    await download(fetched);
  } catch {
    // The lists of packages may be missing or too old.
    await run("apt-get", ["update", "-qq"]);
    await download(fetched);
  }
  const root = join(cache, "unpacking");
  for (const name of readdirSync(fetched)) await run("dpkg", ["-x", join(fetched, name), root]);
  renameSync(root, join(cache, "root"));
}

/** The package with those it needs that are not on this machine. */
async function download(folder: string): Promise<void> {
  const { stdout } = await run("apt-get", ["install", "--simulate", PACKAGE]);
  const names = [...stdout.matchAll(/^Inst (\S+)/gm)].flatMap(([, name]) => name ?? []);
  await run("apt-get", ["download", ...names], { cwd: folder });
}
