import { mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { describeFileError } from "../../base/index.ts";
import { InvalidInputError } from "../../errors/index.ts";

/** Throws `InvalidInputError` unless the folder is missing or empty. */
export function assertFree(folder: string): void {
  const stats = statSync(folder, { throwIfNoEntry: false });
  if (stats === undefined) return;
  if (!stats.isDirectory()) throw new InvalidInputError(`${folder} is a file; give another name`);
  if (readdirSync(folder).length > 0) throw notEmpty(folder);
}

/**
 * Writes all files or none: they are written to a hidden folder beside the project's, which is then renamed. A killed
 * process leaves at most that hidden folder. Throws `InvalidInputError`, also if another process was faster.
 */
export function writeProject(folder: string, files: ReadonlyMap<string, string>): void {
  const parent = dirname(folder);
  let draft: string | undefined;
  try {
    mkdirSync(parent, { recursive: true });
    draft = mkdtempSync(join(parent, `.${basename(folder)}-`));
    // The folder gets the usual permissions; `mkdtemp` makes it private.
    const root = join(draft, "project");
    for (const [path, text] of files) {
      mkdirSync(dirname(join(root, path)), { recursive: true });
      writeFileSync(join(root, path), text);
    }
    moveTo(folder, root);
  } catch (cause) {
    if (cause instanceof InvalidInputError) throw cause;
    throw new InvalidInputError(describeFileError(folder, cause), { cause });
  } finally {
    if (draft !== undefined) rmSync(draft, { recursive: true, force: true });
  }
}

/** A rename replaces an empty folder, and fails for any other file, folder or link. */
function moveTo(folder: string, draft: string): void {
  try {
    renameSync(draft, folder);
  } catch (error) {
    const isTaken = ["ENOTEMPTY", "EEXIST", "ENOTDIR"].some((code) => (error as NodeJS.ErrnoException).code === code);
    throw isTaken ? notEmpty(folder) : error;
  }
}

function notEmpty(folder: string): InvalidInputError {
  return new InvalidInputError(`${folder} exists and is not an empty folder; give another name, or empty it first`);
}
