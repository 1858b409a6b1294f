import { accessSync, closeSync, constants, openSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { describeValue } from "../../base/index.ts";
import { InvalidInputError } from "../../errors/index.ts";

/** A database that lives in this process' memory and ends with it. */
export const IN_MEMORY = ":memory:";

/**
 * Makes sure that a database can be opened at the path; a new file is readable by its owner only, and so are the files
 * that SQLite puts beside it. Throws `InvalidInputError` where the path is no place for one.
 */
export function prepareFile(path: string): void {
  if (path === IN_MEMORY) return;
  if (typeof path !== "string") {
    throw new InvalidInputError(
      `the database path ${describeValue(path)} is not a path; give that of a file, or :memory:`,
    );
  }
  if (path.trim() === "" || path.includes("\0")) {
    throw refused(path, "is not a path; give that of a file, or :memory:");
  }
  const folder = dirname(resolve(path));
  if (kindOf(folder) !== "folder")
    throw refused(path, `lies in a folder that does not exist: ${folder}; create it first`);
  const kind = kindOf(path);
  if (kind === "folder") throw refused(path, "is a folder; give the path of a file in it");
  try {
    if (kind === "file") accessSync(path, constants.R_OK | constants.W_OK);
    else closeSync(openSync(path, "a", 0o600));
    // SQLite keeps its log beside the file.
    accessSync(folder, constants.W_OK);
  } catch (error) {
    throw refused(path, "may not be read and written by this process; its folder must be writable too", error);
  }
}

function kindOf(path: string): "file" | "folder" | "nothing" {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (!stats) return "nothing";
  return stats.isDirectory() ? "folder" : "file";
}

function refused(path: string, why: string, cause?: unknown): InvalidInputError {
  return new InvalidInputError(`the database path ${JSON.stringify(path)} ${why}`, { details: { path }, cause });
}
