import { accessSync, closeSync, constants, openSync, realpathSync, type Stats, statSync } from "node:fs";
import { dirname, resolve, sep } from "node:path";
import { describeValue, isNoSpace } from "../../base/index.ts";
import { InvalidInputError } from "../../errors/index.ts";
import { noSpaceLeft } from "./sqlite-errors.ts";

/** A database in the memory of this process. */
export const IN_MEMORY = ":memory:";

/**
 * The absolute form of a database path, or `:memory:`. SQLite interprets other special names, such as those that begin with `file:`,
 * differently from the file system, so it only ever gets the result. Accesses no file.
 *
 * Throws `InvalidInputError` for `file:` URLs, empty names, names with a NUL or a separator at their end, and values that are not
 * strings.
 */
export function databasePath(path: unknown): string {
  if (path === IN_MEMORY) return IN_MEMORY;
  if (typeof path !== "string" || path.trim() === "" || path.includes("\0")) {
    throw new InvalidInputError(
      `the database path ${describeValue(path)} is not a path; give the path of a file, or ${IN_MEMORY}`,
    );
  }
  if (/^\s*file:/i.test(path)) throw refused(path, `is a URL; give the path of the file itself: ${pathInUrl(path)}`);
  if (path.endsWith("/") || path.endsWith(sep)) {
    throw refused(path, "ends like the path of a folder; give the path of a file");
  }
  return resolve(path);
}

/**
 * The path for opening a database, without symbolic links, because SQLite's other files must be beside the file itself. A missing file is
 * created empty, readable only by its owner, like the files that SQLite creates beside it.
 *
 * Throws `InvalidInputError` if a database cannot be opened at the path, and `StoreUnavailableError` if the disk is full.
 */
export function prepareFile(given: unknown): string {
  const path = databasePath(given);
  if (path === IN_MEMORY) return path;
  if (!isFolder(dirname(path))) {
    throw refused(path, `is in a folder that does not exist: ${dirname(path)}; create it first`);
  }
  try {
    const stats = statSync(path, { throwIfNoEntry: false });
    if (stats) checkFile(path, stats);
    else closeSync(openSync(path, "a", 0o600));
    const file = realpathSync(path);
    accessSync(file, constants.R_OK | constants.W_OK);
    // SQLite keeps its write-ahead log beside the file.
    accessSync(dirname(file), constants.W_OK);
    return file;
  } catch (error) {
    if (error instanceof InvalidInputError) throw error;
    if (isNoSpace(error)) throw noSpaceLeft(path, error);
    throw refused(path, "may not be read and written by this process; its folder must be writable too", error);
  }
}

function checkFile(path: string, stats: Stats): void {
  if (stats.isDirectory()) throw refused(path, "is a folder; give the path of a file in it");
  if (!stats.isFile()) throw refused(path, "is not a regular file; give the path of a regular file");
  // The write-ahead log is found by the name of the database, so a second name would open the same file without its newest rows.
  if (stats.nlink > 1) {
    throw refused(
      path,
      `is one of ${stats.nlink} hard links to a file; keep only one of them, copy the file, or use symbolic links`,
    );
  }
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

/** The path in a `file:` URL: without the host, which can only be this machine, and without parameters. */
function pathInUrl(url: string): string {
  const path = url.replace(/^\s*file:(\/\/[^/]*)?/i, "").replace(/[?#].*$/s, "");
  return path === "" ? "./team.db" : path;
}

function refused(path: string, why: string, cause?: unknown): InvalidInputError {
  return new InvalidInputError(`the database path ${JSON.stringify(path)} ${why}`, { details: { path }, cause });
}
