import { existsSync, readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { libraryPath, unpackDebian } from "./debian-package.ts";
import { onceAMachine } from "./once-a-machine.ts";

/** The folder with `initdb` and `postgres` of this machine. */
export interface PostgresProgram {
  readonly folder: string;
  readonly environment: Readonly<Record<string, string>>;
}

const PACKAGE = "postgresql";
const OLDEST = 13;
const cache = join(tmpdir(), `troupe-postgres-${process.getuid?.() ?? "user"}`);

/**
 * Postgres from PATH or from where Debian installs it; otherwise the Debian packages, unpacked into a folder of the temporary directory,
 * once per machine. Nothing is installed and no service is started. `undefined`, with a printed hint, if none is available.
 */
export async function findPostgres(): Promise<PostgresProgram | undefined> {
  const known = onPath() ?? installedIn("/") ?? unpacked();
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
      `Postgres is not on PATH and could not be fetched with apt-get (${why}). Install Postgres 13 or later, for instance with "apt-get install postgresql" or "brew install postgresql"; the tests that need it are skipped.\n`,
    );
  }
  return unpacked();
}

function onPath(): PostgresProgram | undefined {
  const folder = (process.env["PATH"] ?? "").split(delimiter).find((one) => isComplete(one));
  return folder === undefined ? undefined : { folder, environment: {} };
}

/** The newest version below a root of the file system. */
function installedIn(root: string): PostgresProgram | undefined {
  const versions = join(root, "usr/lib/postgresql");
  if (!existsSync(versions)) return undefined;
  const found = readdirSync(versions)
    .filter((version) => Number(version) >= OLDEST && isComplete(join(versions, version, "bin")))
    .sort((one, other) => Number(other) - Number(one));
  const [newest] = found;
  return newest === undefined ? undefined : { folder: join(versions, newest, "bin"), environment: {} };
}

function unpacked(): PostgresProgram | undefined {
  const root = join(cache, "root");
  const program = installedIn(root);
  return program && { ...program, environment: libraryPath(root) };
}

function isComplete(folder: string): boolean {
  return existsSync(join(folder, "initdb")) && existsSync(join(folder, "postgres"));
}
