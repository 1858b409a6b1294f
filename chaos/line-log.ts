import { closeSync, existsSync, fsyncSync, openSync, readFileSync, readSync, statSync, writeSync } from "node:fs";

/** A file of JSON lines that one process writes. */
export interface LineWriter {
  /** Appends a line. If the log was opened with `sync`, the line is on disk when this returns. */
  append(value: object): void;
  close(): void;
}

export function openLineWriter(path: string, options: { readonly sync: boolean }): LineWriter {
  const descriptor = openSync(path, "a", 0o600);
  return {
    append(value) {
      writeSync(descriptor, `${JSON.stringify(value)}\n`);
      if (options.sync) fsyncSync(descriptor);
    },
    close: () => closeSync(descriptor),
  };
}

/** All lines of a log; empty if there is no file. */
export function readLines<Line>(path: string): Line[] {
  return existsSync(path) ? parseLines<Line>(readFileSync(path, "utf8")) : [];
}

/** Follows a log that another process writes. */
export class LineReader<Line> {
  readonly #path: string;
  #offset = 0;
  #rest = "";
  readonly #lines: Line[] = [];

  constructor(path: string) {
    this.#path = path;
  }

  /** All lines so far, oldest first. Only new lines are read from the file. */
  lines(): readonly Line[] {
    if (!existsSync(this.#path)) return this.#lines;
    const size = statSync(this.#path).size;
    if (size > this.#offset) {
      const bytes = Buffer.alloc(size - this.#offset);
      const descriptor = openSync(this.#path, "r");
      try {
        this.#offset += readSync(descriptor, bytes, 0, bytes.length, this.#offset);
      } finally {
        closeSync(descriptor);
      }
      const text = this.#rest + bytes.toString("utf8");
      const end = text.lastIndexOf("\n") + 1;
      this.#rest = text.slice(end);
      this.#lines.push(...parseLines<Line>(text.slice(0, end)));
    }
    return this.#lines;
  }
}

function parseLines<Line>(text: string): Line[] {
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Line);
}
