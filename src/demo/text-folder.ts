import { constants } from "node:fs";
import { open, readdir, realpath } from "node:fs/promises";
import { join, normalize, relative, sep, win32 } from "node:path";
import { InvalidInputError } from "../errors/index.ts";
import { isProse } from "../model/index.ts";

export interface TextFile {
  /** Path below the root, with `/`. */
  readonly path: string;
  readonly lines: readonly string[];
}

const maxBytes = 2_000_000;
const readAtATime = 8;
const mostFiles = 5_000;
const machineWritten = /(?:\.min\.[cm]?js|\.map|\.lock|(?:^|\/)package-lock\.json)$/;

/**
 * The files of a folder that a model may read.
 * Owns: access to the folder. Does not own: the use of the text.
 * 1. No path leaves the root: not by `..`, not as an absolute path, not through a symbolic link.
 * 2. Below the root, hidden entries (`.git`, `.env`) and `node_modules` are invisible; the root itself may be inside
 *    one.
 * 3. Only text is returned: regular files of at most 2 MB without NUL bytes.
 * 4. If `only` is given, the root's other entries are invisible.
 * 5. No message contains the root's own path.
 */
export class TextFolder {
  readonly #root: string;
  readonly #only: readonly string[] | undefined;

  constructor(root: string, only?: readonly string[]) {
    this.#root = root;
    this.#only = only;
  }

  /** Paths below the root with `/`, documents before code, each group in alphabetical order; at most `mostFiles`. */
  async files(signal: AbortSignal): Promise<readonly string[]> {
    const base = await this.#base();
    const found: string[] = [];
    const folders = [""];
    for (let folder = folders.shift(); folder !== undefined && found.length < mostFiles; folder = folders.shift()) {
      signal.throwIfAborted();
      // An unreadable folder has no entries; links are listed under their own path.
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

  /** Reads the lines of a file. Throws `InvalidInputError` that describes the problem with the path or file. */
  async read(path: string, signal: AbortSignal): Promise<TextFile> {
    signal.throwIfAborted();
    const base = await this.#base();
    const isBelow = !/^(?:\.\.(?:[/\\]|$)|[/\\])/.test(normalize(path)) && !win32.isAbsolute(path);
    if (path.trim() === "" || path.includes("\0") || !isBelow) throw refusal(path, "the path must be below the folder");
    const real = await realpath(join(base, path)).catch(() => {
      throw refusal(path, "there is no such file");
    });
    const shown = relative(base, real).split(sep).join("/");
    if (shown.startsWith("../")) throw refusal(path, "it is a link to a file outside the folder");
    if (this.#isHidden(shown)) throw refusal(path, "it is not one of the readable files");
    // Does not follow a link created meanwhile, and does not block on a pipe without a writer.
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

  /** Reads those of these files that still exist, are text and not too large. */
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
