import { existsSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { libraryPath, unpackDebian } from "./debian-package.ts";
import { onceAMachine } from "./once-a-machine.ts";

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
    await onceAMachine(
      cache,
      () => unpacked() !== undefined,
      () => unpackDebian(PACKAGE, cache),
    );
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
  return existsSync(path) ? { path, environment: libraryPath(root) } : undefined;
}
