import { existsSync, realpathSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { InvalidInputError } from "../errors/index.ts";

/** The root is two folders above this file, in `src/cli` and in `dist/chunks`. */
const packageRoot = fileURLToPath(new URL("../..", import.meta.url));

/** Files that the team may read. */
interface Documents {
  readonly root: string;
  /** Entries of the root that the team may read. Default: all. */
  readonly only?: readonly string[];
  /** Name for people. */
  readonly title: string;
}

/** The given folder, or this project's own README and documents, independent of the working directory. */
export function documentsIn(files: string | null): Documents {
  if (files !== null) return { root: files, title: files };
  const only = ["README.md", "docs"].filter((name) => existsSync(join(packageRoot, name)));
  return { root: packageRoot, only, title: "this project's own documents" };
}

/** The absolute path of a folder. Throws `InvalidInputError` if it does not exist. */
export function folderAt(path: string, directory: string): string {
  const folder = resolve(directory, path);
  const stats = statSync(folder, { throwIfNoEntry: false });
  if (stats?.isDirectory() === true) return realpathSync(folder);
  throw new InvalidInputError(
    `--files ${path}: ${stats === undefined ? "there is no such folder" : "that is not a folder"}; give a folder of text files`,
  );
}
