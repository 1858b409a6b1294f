import { createLogUpdate } from "log-update";

/** The part of a terminal stream that the screen uses. */
export interface TerminalStream extends NodeJS.WritableStream {
  readonly columns?: number | undefined;
  readonly rows?: number | undefined;
}

const hideCursor = "\u001B[?25l";
const showCursor = "\u001B[?25h";

/**
 * A block of lines at the end of the terminal, drawn over itself.
 * Owns: the block, the visibility of the cursor. Does not own: the content, the time of drawing.
 *
 * Invariants
 * 1. `close` restores the terminal, and later drawings are dropped. It may be called again.
 * 2. `suspend` restores the terminal, and drawings are dropped until `resume`.
 */
export class LiveScreen {
  readonly #stream: TerminalStream;
  readonly #block: ReturnType<typeof createLogUpdate>;
  #isDrawn = false;
  #state: "live" | "suspended" | "closed" = "live";

  constructor(stream: TerminalStream) {
    this.#stream = stream;
    // The package would hide the cursor of stderr.
    this.#block = createLogUpdate(stream, { showCursor: true });
  }

  get size(): { readonly columns: number; readonly rows: number } {
    return { columns: this.#stream.columns ?? 80, rows: this.#stream.rows ?? 24 };
  }

  draw(lines: readonly string[]): void {
    if (this.#state !== "live") return;
    if (!this.#isDrawn) this.#stream.write(hideCursor);
    this.#isDrawn = true;
    this.#block(lines.join("\n"));
  }

  /** Removes the block and restores the terminal. */
  close(): void {
    this.#clear();
    this.#state = "closed";
  }

  /** Gives the terminal to a person: nothing is drawn until `resume`. */
  suspend(): void {
    this.#clear();
    this.#state = "suspended";
  }

  resume(): void {
    if (this.#state === "suspended") this.#state = "live";
  }

  #clear(): void {
    if (!this.#isDrawn) return;
    this.#block.clear();
    this.#stream.write(showCursor);
    this.#isDrawn = false;
  }
}
