/** What the screen needs of a terminal stream. */
export interface TerminalStream {
  readonly columns?: number | undefined;
  readonly rows?: number | undefined;
  write(text: string): unknown;
}

const hideCursor = "\u001B[?25l";
const showCursor = "\u001B[?25h";
/** Long lines are cut, not carried on below: a line that turns into two would be left behind by the next drawing. */
const stopWrapping = "\u001B[?7l";
const wrapAgain = "\u001B[?7h";
const clearToEnd = "\u001B[J";
const clearLine = "\u001B[2K";

/**
 * A block of lines that is drawn over itself at the end of what a terminal shows.
 * Owns: the block, the cursor's visibility. Does not own: when it is drawn, what is in it.
 *
 * Invariants
 * 1. Between drawings the cursor stands at the start of the line below the block.
 * 2. After `close` the terminal is as it was, however often that is called; what is drawn later is dropped.
 * 3. From `suspend` to `resume` the terminal is as it was, and what is drawn is dropped.
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

  /** Takes the block away and gives the terminal back. */
  close(): void {
    this.#clear();
    this.#state = "closed";
  }

  /** Gives the terminal to a person for a while: nothing is drawn until `resume`. */
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
