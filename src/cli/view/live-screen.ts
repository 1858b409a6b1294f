/** The part of a terminal stream that the screen uses. */
export interface TerminalStream {
  readonly columns?: number | undefined;
  readonly rows?: number | undefined;
  write(text: string): unknown;
}

const hideCursor = "\u001B[?25l";
const showCursor = "\u001B[?25h";
/** Cuts long lines instead of wrapping them: the next drawing would not clear the second half. */
const stopWrapping = "\u001B[?7l";
const wrapAgain = "\u001B[?7h";
const clearToEnd = "\u001B[J";
const clearLine = "\u001B[2K";

/**
 * A block of lines at the end of the terminal, drawn over itself.
 * Owns: the block, the visibility of the cursor. Does not own: the content, the time of drawing.
 *
 * Invariants
 * 1. Between drawings the cursor is at the start of the line below the block.
 * 2. `close` restores the terminal, and later drawings are dropped. It may be called again.
 * 3. `suspend` restores the terminal, and drawings are dropped until `resume`.
 */
export class LiveScreen {
  readonly #stream: TerminalStream;
  #drawn = 0;
  #state: "fresh" | "live" | "closed" = "fresh";
  #isSuspended = false;

  constructor(stream: TerminalStream) {
    this.#stream = stream;
  }

  get size(): { readonly columns: number; readonly rows: number } {
    return { columns: this.#stream.columns ?? 80, rows: this.#stream.rows ?? 24 };
  }

  draw(lines: readonly string[]): void {
    if (this.#state === "closed" || this.#isSuspended) return;
    const start = this.#state === "fresh" ? hideCursor + stopWrapping : "";
    this.#state = "live";
    const body = lines.map((line) => `${clearLine}${line}\n`).join("");
    this.#stream.write(`${start}${this.#up()}${body}${clearToEnd}`);
    this.#drawn = lines.length;
  }

  /** Removes the block and restores the terminal. */
  close(): void {
    this.#clear();
    this.#state = "closed";
  }

  /** Gives the terminal to a person: nothing is drawn until `resume`. */
  suspend(): void {
    this.#clear();
    this.#isSuspended = true;
  }

  resume(): void {
    this.#isSuspended = false;
  }

  #clear(): void {
    if (this.#state !== "live") return;
    this.#stream.write(`${this.#up()}${clearToEnd}${wrapAgain}${showCursor}`);
    this.#state = "fresh";
    this.#drawn = 0;
  }

  #up(): string {
    return this.#drawn === 0 ? "\r" : `\r\u001B[${this.#drawn}A`;
  }
}
