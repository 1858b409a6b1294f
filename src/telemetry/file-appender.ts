import { constants } from "node:fs";
import { mkdir, open } from "node:fs/promises";
import { dirname } from "node:path";
import { warnOnce } from "./listen.ts";

export interface FileAppenderOptions {
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
