import { createLogUpdate } from "log-update";
import { widthOf } from "./text-width.ts";

/** The methods of a terminal stream that the screen uses. */
export interface TerminalStream extends NodeJS.WritableStream {
  readonly columns?: number | undefined;
  readonly rows?: number | undefined;
}

const hideCursor = "\u001B[?25l";
const showCursor = "\u001B[?25h";
const clearToEnd = "\u001B[J";

/**
 * A block of lines at the bottom of the terminal, redrawn in place.
 * Owns: the block, the visibility of the cursor. Does not own: the content, the time of drawing.
 *
 * Invariants
 * 1. `close` restores the terminal, and drops later drawings. It may be called again.
 * 2. `suspend` restores the terminal, and drops drawings until `resume`.
 * 3. No row of an earlier drawing remains, even if the terminal became narrower and wrapped its lines meanwhile.
 */
export class LiveScreen {
  readonly #stream: TerminalStream;
  readonly #block: ReturnType<typeof createLogUpdate>;
  #drawn: { readonly lines: readonly string[]; readonly columns: number } | undefined;
  #state: "live" | "suspended" | "closed" = "live";

  constructor(stream: TerminalStream) {
    this.#stream = stream;
    // Otherwise the package would hide the cursor of stderr.
    this.#block = createLogUpdate(stream, { showCursor: true });
  }

  get size(): { readonly columns: number; readonly rows: number } {
    return { columns: this.#stream.columns ?? 80, rows: this.#stream.rows ?? 24 };
  }

  draw(lines: readonly string[]): void {
    if (this.#state !== "live") return;
    const { columns } = this.size;
    if (this.#drawn === undefined) this.#stream.write(hideCursor);
    else if (this.#drawn.columns !== columns) this.#erase(this.#drawn.lines, columns);
    this.#drawn = { lines, columns };
    this.#block(lines.join("\n"));
  }

  /** Writes lines above the block, where they remain; the next drawing is below them. */
  print(lines: readonly string[]): void {
    if (this.#state === "closed" || lines.length === 0) return;
    this.#clear();
    this.#stream.write(`${lines.join("\n")}\n`);
  }

  /** Removes the block and restores the terminal. */
  close(): void {
    this.#clear();
    this.#state = "closed";
  }

  /** Prints these lines and lets a person use the terminal: nothing is drawn until `resume`. */
  suspend(lines: readonly string[]): void {
    if (this.#state !== "live") return;
    this.#clear();
    this.#stream.write(`${lines.map((line) => `${line}\n`).join("")}${showCursor}`);
    this.#state = "suspended";
  }

  resume(): void {
    if (this.#state === "suspended") this.#state = "live";
  }

  #clear(): void {
    if (this.#drawn === undefined) return;
    const { columns } = this.size;
    if (this.#drawn.columns === columns) this.#block.clear();
    else this.#erase(this.#drawn.lines, columns);
    this.#stream.write(showCursor);
    this.#drawn = undefined;
  }

  /** Erases lines that were drawn at another width: a narrower terminal has wrapped them. */
  #erase(lines: readonly string[], columns: number): void {
    const rows = lines.reduce((total, line) => total + rowsOf(line, columns), 0);
    this.#stream.write(`\u001B[${rows}A\r${clearToEnd}`);
    // Resets the block, so that the next drawing does not erase it again.
    this.#block.done();
  }
}

/** Number of rows of a line in a terminal with this many columns. */
export function rowsOf(line: string, columns: number): number {
  return Math.max(1, Math.ceil(widthOf(line) / Math.max(1, columns)));
}
