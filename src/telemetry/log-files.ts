import { createHash, randomUUID } from "node:crypto";
import { constants } from "node:fs";
import { mkdir, rename, rm, writeFile, open } from "node:fs/promises";
import { dirname } from "node:path";
import { describeFileError } from "../base/index.ts";
import { warnOnce } from "./listen.ts";

interface FileAppenderOptions {
  /** Refuses symbolic links, for folders that other users can write to. */
  readonly refusesLinks: boolean;
}

/** Maximum number of characters queued for a slow disk; more is dropped with a warning. */
const mostWaiting = 16 * 1024 * 1024;

/**
 * Appends text to files, in order, without blocking its caller.
 * Owns: the queued text. Keeps no handles open between writes, so the number of files is unlimited.
 * If the disk fails, it warns once, and the text is lost.
 */
export class FileAppender {
  readonly #flags: number;
  readonly #warn = warnOnce("a log could not be written");
  #waiting = new Map<string, string>();
  #size = 0;
  #work: Promise<void> | undefined;

  constructor({ refusesLinks }: FileAppenderOptions) {
    const { O_APPEND, O_CREAT, O_WRONLY } = constants;
    // Windows lacks this flag, and lets only privileged users create links.
    const noLinks: number | undefined = constants.O_NOFOLLOW;
    this.#flags = O_APPEND | O_CREAT | O_WRONLY | (refusesLinks ? (noLinks ?? 0) : 0);
  }

  append(path: string, text: string): void {
    if (this.#size + text.length > mostWaiting) {
      this.#warn(new Error("the disk is too slow; lines are dropped"));
      return;
    }
    this.#waiting.set(path, (this.#waiting.get(path) ?? "") + text);
    this.#size += text.length;
    this.#work ??= this.#drain();
  }

  /** Resolves when all text so far is written or lost. */
  async flush(): Promise<void> {
    await this.#work;
  }

  async #drain(): Promise<void> {
    // Collects all text of this event loop turn into one write.
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
    try {
      await mkdir(dirname(path), { recursive: true, mode: 0o700 });
      const handle = await open(path, this.#flags, 0o600);
      try {
        await handle.appendFile(text);
      } finally {
        await handle.close();
      }
    } catch (error) {
      throw new Error(describeFileError(path, error), { cause: error });
    }
  }
}

/**
 * Writes a whole file atomically: to a new file next to it, which is then renamed. An existing symbolic link is
 * replaced, not followed. Creates folders that only the process's owner may read.
 */
export async function writeWholeFile(path: string, text: string): Promise<void> {
  const beside = `${path}.${randomUUID()}.tmp`;
  try {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    await writeFile(beside, text, { flag: "wx", mode: 0o600 });
    await rename(beside, path);
  } catch (error) {
    await rm(beside, { force: true });
    throw new Error(describeFileError(path, error), { cause: error });
  }
}

const longestName = 180;
/** Names that Windows reserves for devices, with any extension. */
const device = /^(?:con|prn|aux|nul|com\d|lpt\d)(?=\.|$)/;

/**
 * A file name for an id: never a path, and unique for each id, even on file systems that ignore
 * case. Keeps lower-case letters, digits, `_` and, except at the start, `-`, `~`, `@` and dots. Everything else becomes `%`
 * and the hexadecimal digits of its UTF-8 bytes. Ids that are too long or not well-formed text end in their SHA-256.
 */
export function fileNameOf(id: string): string {
  const bytes = [...Buffer.from(id)];
  const name = bytes.map((byte, index) => (isPlain(byte, index) ? String.fromCharCode(byte) : escaped(byte))).join("");
  const guarded = device.test(name) ? escaped(name.charCodeAt(0)) + name.slice(1) : name;
  if (guarded !== "" && guarded.length <= longestName && id.isWellFormed()) return guarded;
  // No other name contains "%%".
  const hash = createHash("sha256").update(id, "utf16le").digest("hex");
  return `${guarded.slice(0, 100).replace(/%.?$/, "")}%%${hash}`;
}

function isPlain(byte: number, index: number): boolean {
  return (index === 0 ? /[a-z0-9_]/ : /[a-z0-9._~@-]/).test(String.fromCharCode(byte));
}

function escaped(byte: number): string {
  return `%${byte.toString(16).padStart(2, "0")}`;
}
