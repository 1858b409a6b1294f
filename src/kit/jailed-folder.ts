import { randomUUID } from "node:crypto";
import { constants, type Stats } from "node:fs";
import { type FileHandle, lstat, mkdir, open, readdir, realpath, rename, rm } from "node:fs/promises";
import { join, relative, sep } from "node:path";
import { InvalidInputError } from "../errors/index.ts";
import { namesOfPath, refusedPath } from "./workspace-path.ts";

/** A member of a folder. */
export interface FolderEntry {
  /** Its name in the folder. */
  readonly name: string;
  /** `other` is a pipe, a socket or a device. */
  readonly kind: "file" | "folder" | "link" | "other";
  /** Bytes of a file, otherwise 0. */
  readonly size: number;
}

const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK, O_DIRECTORY, O_WRONLY, O_CREAT, O_EXCL } = constants;
/** Files that are being written, left behind if the process ends. */
const unfinished = /^\.troupe-[0-9a-f-]{36}\.tmp$/;
/** Links that are followed one after the other when a file is written. */
const MOST_LINKS = 8;

/**
 * The files of one folder, for a model that may be hostile.
 * Owns: access to the folder. Does not own: the meaning of the content.
 * 1. No path leaves the folder: not by `..`, not as an absolute path, not through a symbolic link, and, on Linux, not through a link that
 *    is created between the check and the use: every folder on the way is held open, and the next name is resolved from it.
 * 2. A file is replaced as a whole: a reader sees the old or the new content, and a hard link to a file outside is not written through.
 * 3. Only regular files are read and written.
 * 4. Nothing is written into `.git`, whose hooks and configuration are programs that other people run.
 * 5. No message contains the folder's own path.
 */
export class JailedFolder {
  readonly #root: string;

  constructor(root: string) {
    this.#root = root;
  }

  /** The real path of the folder, or of a folder in it, for a process that works there. */
  async realPath(path: string): Promise<string> {
    const root = await this.#realRoot();
    const names = await this.#realNames(root, path);
    const folder = await openFolder(root, names, path);
    await folder.close();
    return join(root, ...names);
  }

  /** Members of a folder, sorted by name. */
  async list(path: string): Promise<readonly FolderEntry[]> {
    const root = await this.#realRoot();
    const folder = await openFolder(root, await this.#realNames(root, path), path);
    try {
      const members = await readdir(folder.path, { withFileTypes: true });
      const entries = await Promise.all(
        members
          .filter(({ name }) => !unfinished.test(name))
          .map(async (member): Promise<FolderEntry | undefined> => {
            const { name } = member;
            if (member.isSymbolicLink()) return { name, kind: "link", size: 0 };
            if (member.isDirectory()) return { name, kind: "folder", size: 0 };
            if (!member.isFile()) return { name, kind: "other", size: 0 };
            // The file may be gone meanwhile.
            const stats = await lstat(join(folder.path, name)).catch(() => undefined);
            return stats && { name, kind: "file", size: stats.size };
          }),
      );
      return entries
        .filter((entry) => entry !== undefined)
        .sort((one, other) => (one.name < other.name ? -1 : Number(one.name > other.name)));
    } finally {
      await folder.close();
    }
  }

  /** The content of a file of at most `maxBytes`. */
  async read(path: string, maxBytes: number, signal: AbortSignal): Promise<Uint8Array> {
    const root = await this.#realRoot();
    const names = await this.#realNames(root, path);
    const name = names.at(-1);
    if (name === undefined) throw refusedPath(path, "it is a folder");
    const folder = await openFolder(root, names.slice(0, -1), path);
    try {
      // Does not follow a link that was created meanwhile, and does not block on a pipe without a writer.
      const file = await open(join(folder.path, name), O_RDONLY | O_NOFOLLOW | O_NONBLOCK).catch((error: unknown) => {
        throw refusedPath(path, reasonOf(error), error);
      });
      try {
        return await contentOf(file, path, maxBytes, signal);
      } finally {
        await file.close();
      }
    } finally {
      await folder.close();
    }
  }

  /** Writes a file as a whole, and creates the folders above it. */
  async write(path: string, content: Uint8Array): Promise<void> {
    await this.#write(path, path, content, 0);
  }

  async #write(shown: string, path: string, content: Uint8Array, links: number): Promise<void> {
    if (links > MOST_LINKS) throw refusedPath(shown, "it is a link to a link without an end");
    const names = namesOfPath(path);
    const name = names.at(-1);
    if (name === undefined) throw refusedPath(shown, "it is a folder");
    const root = await this.#realRoot();
    const above = names.slice(0, -1);
    const existing = await this.#deepestExisting(root, above, shown);
    const missing = above.slice(existing.depth);
    for (const one of [...existing.names, ...missing, name]) {
      if (one.toLowerCase() === ".git") throw refusedPath(shown, "nothing is written into .git");
    }
    const folder = await openFolder(root, existing.names, shown, missing);
    try {
      const target = join(folder.path, name);
      const before = await lstat(target).catch(() => undefined);
      if (before?.isSymbolicLink()) {
        const real = await this.#realNames(root, path);
        return await this.#write(shown, real.join("/"), content, links + 1);
      }
      if (before && !before.isFile()) {
        throw refusedPath(shown, before.isDirectory() ? "it is a folder" : "it is not a regular file");
      }
      await replaceFile(folder.path, name, content, before).catch((error: unknown) => {
        throw refusedPath(shown, reasonOf(error), error);
      });
    } finally {
      await folder.close();
    }
  }

  /** The real names of a path that exists, below the real root. */
  async #realNames(root: string, path: string): Promise<readonly string[]> {
    const names = namesOfPath(path);
    const real = await realpath(join(root, ...names)).catch((error: unknown) => {
      throw refusedPath(path, reasonOf(error), error);
    });
    return namesBelow(root, real, path);
  }

  /** The real names of the longest part of a path that exists, and how many of the given names it has. */
  async #deepestExisting(
    root: string,
    names: readonly string[],
    shown: string,
  ): Promise<{ readonly names: readonly string[]; readonly depth: number }> {
    for (let depth = names.length; depth > 0; depth -= 1) {
      const path = join(root, ...names.slice(0, depth));
      try {
        return { names: namesBelow(root, await realpath(path), shown), depth };
      } catch (error) {
        if (!isMissing(error))
          throw error instanceof InvalidInputError ? error : refusedPath(shown, reasonOf(error), error);
        // A link to a missing place is not a missing folder.
        if (await lstat(path).catch(() => undefined)) throw refusedPath(shown, "it leads through a broken link", error);
      }
    }
    return { names: [], depth: 0 };
  }

  async #realRoot(): Promise<string> {
    return await realpath(this.#root).catch((error: unknown) => {
      throw new InvalidInputError("The folder of the workspace does not exist any more.", { cause: error });
    });
  }
}

function namesBelow(root: string, real: string, path: string): readonly string[] {
  const below = relative(root, real);
  if (below === "") return [];
  const names = below.split(sep);
  if (names[0] === ".." || below.startsWith(sep)) throw refusedPath(path, "it leads out of the workspace");
  return names;
}

/** A folder that is held open. */
interface OpenFolder {
  /** A path by which its members are reached. On Linux it names the open folder itself, even after it was moved. */
  readonly path: string;
  close(): Promise<void>;
}

/** Opens a folder name by name, without following links, and creates the missing ones. */
async function openFolder(
  root: string,
  names: readonly string[],
  shown: string,
  missing: readonly string[] = [],
): Promise<OpenFolder> {
  const flags = O_RDONLY | O_DIRECTORY;
  let handle: FileHandle | undefined;
  let path = root;
  try {
    handle = await open(root, flags);
    for (const [index, name] of [...names, ...missing].entries()) {
      const next = join(pathOf(handle, path), name);
      if (index >= names.length) {
        await mkdir(next).catch((error: unknown) => {
          // Another call has created it meanwhile; a link in its place is not followed below.
          if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
        });
      }
      const child = await open(next, flags | O_NOFOLLOW);
      await handle.close();
      handle = child;
      path = join(path, name);
    }
  } catch (error) {
    await handle?.close();
    throw refusedPath(shown, reasonOf(error), error);
  }
  const opened = handle;
  return { path: pathOf(opened, path), close: () => opened.close() };
}

function pathOf(handle: FileHandle, path: string): string {
  return process.platform === "linux" ? `/proc/self/fd/${handle.fd}` : path;
}

async function contentOf(file: FileHandle, path: string, maxBytes: number, signal: AbortSignal): Promise<Uint8Array> {
  const stats = await file.stat();
  if (!stats.isFile()) throw refusedPath(path, stats.isDirectory() ? "it is a folder" : "it is not a regular file");
  if (stats.size > maxBytes) throw tooLarge(path, stats.size, maxBytes);
  const content = await file.readFile({ signal });
  // The file may have grown.
  if (content.byteLength > maxBytes) throw tooLarge(path, content.byteLength, maxBytes);
  return content;
}

/** The error for a file above the limit. */
export function tooLarge(path: string, size: number, maxBytes: number): InvalidInputError {
  return refusedPath(path, `the file has ${size} bytes, and at most ${maxBytes} are read`);
}

async function replaceFile(
  folder: string,
  name: string,
  content: Uint8Array,
  before: Stats | undefined,
): Promise<void> {
  const draft = join(folder, `.troupe-${randomUUID()}.tmp`);
  try {
    const file = await open(draft, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o666);
    try {
      await file.writeFile(content);
      if (before) await file.chmod(before.mode & 0o777);
      await file.datasync();
    } finally {
      await file.close();
    }
    await rename(draft, join(folder, name));
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ENOENT";
}

/** Words without the path that the system's message contains. */
function reasonOf(error: unknown): string {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  return reasons[code] ?? `it cannot be opened${code === "" ? "" : ` (${code})`}`;
}

const reasons: Readonly<Record<string, string>> = {
  ENOENT: "there is no such file or folder",
  ENOTDIR: "a name in it is not a folder",
  EISDIR: "it is a folder",
  ELOOP: "it leads through a link that cannot be followed",
  EACCES: "the process may not use it",
  EPERM: "the process may not use it",
  EROFS: "the file system is read-only",
  ENAMETOOLONG: "it is too long",
  ENOSPC: "no space is left on the disk",
  EDQUOT: "no space is left on the disk",
  EMFILE: "too many files are open; try again",
};
