import { existsSync, realpathSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { InvalidInputError } from "../errors/index.ts";

/** This file lies two folders below it: in `src/cli` as in `dist/chunks`. */
const packageRoot = fileURLToPath(new URL("../..", import.meta.url));

/** Files that a team may read. */
interface Documents {
  readonly root: string;
  /** Entries of the root to which it is limited. Default: all of it. */
  readonly only?: readonly string[];
  /** Name to show to a person. */
  readonly title: string;
}

/** The given folder, or this project's own README and documents, wherever this program was started from. */
export function documentsIn(files: string | null): Documents {
  if (files !== null) return { root: files, title: files };
  const only = ["README.md", "docs"].filter((name) => existsSync(join(packageRoot, name)));
  return { root: packageRoot, only, title: "this project's own documents" };
}

/** The absolute path of a folder that a user named. Throws `InvalidInputError` when there is none. */
export function folderAt(path: string, directory: string): string {
  const folder = resolve(directory, path);
  const stats = statSync(folder, { throwIfNoEntry: false });
  if (stats?.isDirectory() === true) return realpathSync(folder);
  throw new InvalidInputError(
    `--files ${path}: ${stats === undefined ? "there is no such folder" : "that is not a folder"}; give a folder of text files`,
  );
}
