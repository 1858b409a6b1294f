import { constants } from "node:fs";
import { open, readdir, realpath } from "node:fs/promises";
import { join, normalize, relative, sep, win32 } from "node:path";
import { InvalidInputError } from "../errors/index.ts";
import { isProse } from "../model/index.ts";

export interface TextFile {
  /** Below the root, with `/`. */
  readonly path: string;
  readonly lines: readonly string[];
}

const maxBytes = 2_000_000;
const readAtATime = 8;
const mostFiles = 5_000;
const machineWritten = /(?:\.min\.[cm]?js|\.map|\.lock|(?:^|\/)package-lock\.json)$/;

/**
 * The part of a folder that a model may see.
 * Owns: access to it. Does not own: the use of the text.
 * 1. No path leaves the root: not by `..`, not as an absolute path, not through a symbolic link.
 * 2. Below the root, hidden entries (`.git`, `.env`) and `node_modules` are invisible; the root itself may be in such a
 *    place.
 * 3. Only text is given: no file above 2 MB, none with a NUL byte, only regular files.
 * 4. If it is limited to some entries of the root, `only`, the others are invisible.
 * 5. No message contains the root's own path.
 */
export class TextFolder {
  readonly #root: string;
  readonly #only: readonly string[] | undefined;

  constructor(root: string, only?: readonly string[]) {
    this.#root = root;
    this.#only = only;
  }

  /** Paths below the root with `/`, documents before code, each in alphabetical order; at most `mostFiles`. */
  async files(signal: AbortSignal): Promise<readonly string[]> {
    const base = await this.#base();
    const found: string[] = [];
    const folders = [""];
    for (let folder = folders.shift(); folder !== undefined && found.length < mostFiles; folder = folders.shift()) {
      signal.throwIfAborted();
      // A folder that may not be listed has no entries; links are listed at their own place.
      for (const entry of await readdir(join(base, folder), { withFileTypes: true }).catch(() => [])) {
        const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
        if (this.#isHidden(path)) continue;
        if (entry.isDirectory()) folders.push(path);
        else if (entry.isFile() && !machineWritten.test(path)) found.push(path);
      }
    }
    const sorted = found.sort();
    return [...sorted.filter(isProse), ...sorted.filter((path) => !isProse(path))].slice(0, mostFiles);
  }

  /** The lines of a file. Throws `InvalidInputError` that says what is wrong with the path or file. */
  async read(path: string, signal: AbortSignal): Promise<TextFile> {
    signal.throwIfAborted();
    const base = await this.#base();
    const isBelow = !/^(?:\.\.(?:[/\\]|$)|[/\\])/.test(normalize(path)) && !win32.isAbsolute(path);
    if (path.trim() === "" || path.includes("\0") || !isBelow) throw refusal(path, "the path must be below the folder");
    const real = await realpath(join(base, path)).catch(() => {
      throw refusal(path, "there is no such file");
    });
    const shown = relative(base, real).split(sep).join("/");
    if (shown.startsWith("../")) throw refusal(path, "it is a link that leaves the folder");
    if (this.#isHidden(shown)) throw refusal(path, "it does not belong to the files that may be read");
    // Without following a link that appeared since, and without waiting for a pipe's other end.
    const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
    const file = await open(real, flags).catch((error: unknown) => {
      throw refusal(path, "it cannot be opened", error);
    });
    try {
      const stats = await file.stat();
      if (!stats.isFile()) throw refusal(path, "it is not a regular file");
      if (stats.size > maxBytes) throw refusal(path, `the file has ${stats.size} bytes, at most ${maxBytes} are read`);
      const bytes = await file.readFile({ signal });
      if (bytes.subarray(0, 8_192).includes(0)) throw refusal(path, "the file is not text");
      const lines = new TextDecoder().decode(bytes).split(/\r\n|\n|\r/);
      return { path: shown, lines: lines.at(-1) === "" ? lines.slice(0, -1) : lines };
    } finally {
      await file.close();
    }
  }

  /** The files of these paths that are text, not too large and still there. */
  async readEach(paths: readonly string[], signal: AbortSignal): Promise<TextFile[]> {
    const files: TextFile[] = [];
    for (let at = 0; at < paths.length; at += readAtATime) {
      const some = paths.slice(at, at + readAtATime).map((path) => this.read(path, signal));
      for (const one of await Promise.allSettled(some)) {
        if (one.status === "fulfilled") files.push(one.value);
        else if (!(one.reason instanceof InvalidInputError)) throw one.reason;
      }
    }
    return files;
  }

  #isHidden(path: string): boolean {
    const names = path.split("/");
    if (names.some((name) => name.startsWith(".") || name === "node_modules")) return true;
    return this.#only?.includes(names[0] ?? "") === false;
  }

  async #base(): Promise<string> {
    return await realpath(this.#root).catch((error: unknown) => {
      throw new InvalidInputError("The folder of documents cannot be opened.", { cause: error });
    });
  }
}

function refusal(path: string, why: string, cause?: unknown): InvalidInputError {
  const hint = "Give the path of a text file below the folder, as list_files shows it.";
  return new InvalidInputError(`Cannot read ${JSON.stringify(path.slice(0, 200))}: ${why}. ${hint}`, { cause });
}
