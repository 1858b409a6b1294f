import { constants, type Dirent } from "node:fs";
import { lstat, open, readdir, realpath } from "node:fs/promises";
import { isAbsolute, join, relative, sep, win32 } from "node:path";
import { InvalidInputError } from "../errors/index.ts";
import { isProse } from "./passages.ts";

/**
 * The part of a folder that a model may see.
 * Owns: access to it. Does not own: the use of the text.
 * 1. No path leaves the root: not by `..`, not as an absolute path, not through a symbolic link.
 * 2. Below the root, hidden entries (`.git`, `.env`) and `node_modules` are invisible; the root itself may be in such a
 *    place.
 * 3. Only text is given: no file above 2 MB, none with a NUL byte, only regular files.
 * 4. If it is limited to some entries of the root, the others are invisible.
 * 5. No message contains the root's own path.
 */
export interface TextFolder {
  /** Paths below the root with `/`, documents before code, each in alphabetical order; at most `mostFiles`. */
  files(signal: AbortSignal): Promise<readonly string[]>;
  /** The lines of a file. Throws `InvalidInputError` that says what is wrong with the path or file. */
  read(path: string, signal: AbortSignal): Promise<TextFile>;
  /** As `read`, but undefined for a file that is no text, too large or gone. */
  tryRead(path: string, signal: AbortSignal): Promise<TextFile | undefined>;
}

export interface TextFile {
  /** Below the root, with `/`. */
  readonly path: string;
  readonly bytes: number;
  readonly lines: readonly string[];
}

const maxBytes = 2_000_000;
export const mostFiles = 5_000;
const binaryProbeBytes = 8_192;
const machineWritten = /(?:\.min\.[cm]?js|\.map|\.lock|(?:^|\/)package-lock\.json)$/;

interface Bounds {
  readonly root: string;
  /** Entries of the root; undefined: all. */
  readonly only: ReadonlySet<string> | undefined;
}

/** `only` limits it to these entries of the root, files or folders, by name. */
export function textFolder(root: string, only?: readonly string[]): TextFolder {
  const bounds: Bounds = { root, only: only === undefined ? undefined : new Set(only) };
  return {
    files: (signal) => walk(bounds, signal),
    read: (path, signal) => readInside(bounds, path, signal),
    async tryRead(path, signal) {
      try {
        return await readInside(bounds, path, signal);
      } catch (error) {
        signal.throwIfAborted();
        if (error instanceof InvalidInputError) return undefined;
        throw error;
      }
    },
  };
}

async function realRoot(root: string): Promise<string> {
  try {
    return await realpath(root);
  } catch (error) {
    throw new InvalidInputError("The folder of documents cannot be opened.", { cause: error });
  }
}

async function walk({ root, only }: Bounds, signal: AbortSignal): Promise<readonly string[]> {
  const base = await realRoot(root);
  const found: string[] = [];
  const folders = [""];
  for (let folder = folders.shift(); folder !== undefined && found.length < mostFiles; folder = folders.shift()) {
    signal.throwIfAborted();
    for (const entry of await entriesOf(join(base, folder))) {
      const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
      if (isLeftOut(entry.name) || (folder === "" && only?.has(entry.name) === false)) continue;
      if (entry.isDirectory()) folders.push(path);
      else if (entry.isFile() && !machineWritten.test(path)) found.push(path);
    }
  }
  return found
    .sort((left, right) => Number(isProse(right)) - Number(isProse(left)) || (left < right ? -1 : 1))
    .slice(0, mostFiles);
}

/** A folder that may not be listed has no entries. Links are not followed: what they lead to is listed at its own place. */
async function entriesOf(folder: string): Promise<Dirent[]> {
  try {
    return await readdir(folder, { withFileTypes: true });
  } catch {
    return [];
  }
}

function isLeftOut(name: string): boolean {
  return name.startsWith(".") || name === "node_modules";
}

async function readInside({ root, only }: Bounds, path: string, signal: AbortSignal): Promise<TextFile> {
  signal.throwIfAborted();
  const base = await realRoot(root);
  const real = await realInside(base, path);
  const shown = relative(base, real).split(sep).join("/");
  const names = shown.split("/");
  if (names.some(isLeftOut)) throw refusal(path, "hidden files and node_modules are not available");
  if (only?.has(names[0] ?? "") === false) throw refusal(path, "it does not belong to the files that may be read");
  const file = await openFile(real, path);
  try {
    const { size } = await file.stat();
    if (size > maxBytes) throw refusal(path, `the file has ${size} bytes, at most ${maxBytes} are read`);
    const bytes = await file.readFile({ signal });
    if (bytes.subarray(0, binaryProbeBytes).includes(0)) throw refusal(path, "the file is not text");
    return { path: shown, bytes: bytes.length, lines: linesOf(new TextDecoder().decode(bytes)) };
  } finally {
    await file.close();
  }
}

async function realInside(base: string, path: string): Promise<string> {
  if (path.includes("\0")) throw refusal(path.replaceAll("\0", "\\0"), "a path cannot hold a NUL character");
  if (path.trim() === "") throw refusal(path, "the path is empty");
  if (isAbsolute(path) || win32.isAbsolute(path)) throw refusal(path, "absolute paths are not available");
  if (path.split(/[/\\]/).includes("..")) throw refusal(path, '".." is not allowed');
  let real: string;
  try {
    real = await realpath(join(base, path));
  } catch {
    throw refusal(path, "there is no such file");
  }
  if (real !== base && !real.startsWith(base.endsWith(sep) ? base : base + sep)) {
    throw refusal(path, "it is a link that leaves the folder");
  }
  return real;
}

/** Opened without following a link that appeared since, and without waiting for a pipe's other end. */
async function openFile(real: string, path: string) {
  const about = await lstat(real).catch(() => undefined);
  if (about?.isDirectory() === true) throw refusal(path, "it is a folder");
  if (about?.isFile() !== true) throw refusal(path, "it is not a regular file");
  try {
    return await open(real, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    throw refusal(path, "the file cannot be opened", error);
  }
}

function refusal(path: string, why: string, cause?: unknown): InvalidInputError {
  const shown = path.length > 200 ? `${path.slice(0, 200)}…` : path;
  return new InvalidInputError(
    `Cannot read ${JSON.stringify(shown)}: ${why}. Give the path of a text file below the folder, as list_files shows it.`,
    { cause },
  );
}

function linesOf(text: string): string[] {
  const lines = text.split(/\r\n|\n|\r/);
  if (lines.at(-1) === "") lines.pop();
  return lines;
}
