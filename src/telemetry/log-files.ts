import { createHash, randomUUID } from "node:crypto";
import { constants } from "node:fs";
import { mkdir, rename, rm, writeFile, open } from "node:fs/promises";
import { dirname } from "node:path";
import { warnOnce } from "./listen.ts";

interface FileAppenderOptions {
  /** Whether a file that is a symbolic link is refused: the folder's content may be of others' making. */
  readonly refusesLinks: boolean;
}

/** Characters that may wait for a slow disk; what comes on top of it is lost, and said to be. */
const mostWaiting = 16 * 1024 * 1024;

/**
 * Appends text to files, in order, without ever making its caller wait.
 * Owns: what waits to be written. Does not own: handles between writes, so that any number of files may be open to it.
 * A disk that fails is told of once; its text is lost, nothing else is.
 */
export class FileAppender {
  readonly #flags: number;
  readonly #warn = warnOnce("a log could not be written");
  #waiting = new Map<string, string>();
  #size = 0;
  #work: Promise<void> | undefined;

  constructor({ refusesLinks }: FileAppenderOptions) {
    const { O_APPEND, O_CREAT, O_WRONLY } = constants;
    // Windows has no such flag, and no links that anybody may make.
    const noLinks: number | undefined = constants.O_NOFOLLOW;
    this.#flags = O_APPEND | O_CREAT | O_WRONLY | (refusesLinks ? (noLinks ?? 0) : 0);
  }

  append(path: string, text: string): void {
    if (this.#size + text.length > mostWaiting) {
      this.#warn(new Error("the disk is too slow for what is to be written; lines are left out"));
      return;
    }
    this.#waiting.set(path, (this.#waiting.get(path) ?? "") + text);
    this.#size += text.length;
    this.#work ??= this.#drain();
  }

  /** Resolves when all that was appended so far is written, or was lost. */
  async flush(): Promise<void> {
    await this.#work;
  }

  async #drain(): Promise<void> {
    // What is appended in the same turn of the event loop goes into one write.
    await new Promise((resolve) => setImmediate(resolve));
    while (this.#waiting.size > 0) {
      const batch = this.#waiting;
      this.#waiting = new Map();
      this.#size = 0;
      for (const [path, text] of batch) await this.#write(path, text).catch(this.#warn);
    }
    this.#work = undefined;
  }

  async #write(path: string, text: string): Promise<void> {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    const handle = await open(path, this.#flags, 0o600);
    try {
      await handle.appendFile(text);
    } finally {
      await handle.close();
    }
  }
}

/**
 * Writes a whole file so that nobody ever sees a part of it: into a new file beside it, which then takes its place. A
 * symbolic link in its place is replaced, not followed. Folders are made; only the owner of the process may read.
 */
export async function writeWholeFile(path: string, text: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const beside = `${path}.${randomUUID()}.tmp`;
  try {
    await writeFile(beside, text, { flag: "wx", mode: 0o600 });
    await rename(beside, path);
  } catch (error) {
    await rm(beside, { force: true });
    throw error;
  }
}

const longestName = 180;
/** Names that Windows keeps for devices, whatever ending they have. */
const device = /^(?:con|prn|aux|nul|com\d|lpt\d)(?=\.|$)/;

/**
 * An id as the beginning of a file name: never a path, never the same for two ids (guarantee S6), also on file systems
 * that take upper and lower case for one. Lower-case letters, digits, `-`, `_`, `~`, `@` and dots stay as they are, but
 * not signs in front; everything else becomes `%` and the hexadecimal digits of its UTF-8 bytes. Ids that are too long,
 * or no text at all, end in their SHA-256.
 */
export function fileNameOf(id: string): string {
  const bytes = [...Buffer.from(id)];
  const name = bytes.map((byte, index) => (isPlain(byte, index) ? String.fromCharCode(byte) : escaped(byte))).join("");
  const guarded = device.test(name) ? escaped(name.charCodeAt(0)) + name.slice(1) : name;
  if (guarded !== "" && guarded.length <= longestName && id.isWellFormed()) return guarded;
  // "%%" stands in no other name.
  const hash = createHash("sha256").update(id, "utf16le").digest("hex");
  return `${guarded.slice(0, 100).replace(/%.?$/, "")}%%${hash}`;
}

function isPlain(byte: number, index: number): boolean {
  return (index === 0 ? /[a-z0-9_]/ : /[a-z0-9._~@-]/).test(String.fromCharCode(byte));
}

function escaped(byte: number): string {
  return `%${byte.toString(16).padStart(2, "0")}`;
}
