import { mkdirSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { InvalidInputError } from "../../errors/index.ts";

/** Makes the file's folder where it is absent. */
export function fileToWorkIn(path: string): string {
  if (path !== ":memory:") mkdirSync(dirname(resolve(path)), { recursive: true });
  return path;
}

/** Throws `InvalidInputError` when there is no such file. */
export function existingFile(path: string): string {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats?.isFile() === true) return path;
  throw new InvalidInputError(
    stats === undefined
      ? `there is no store at ${path}; give the path of one with --store, or start a job first`
      : `${path} is no file; give the path of a store with --store`,
  );
}
