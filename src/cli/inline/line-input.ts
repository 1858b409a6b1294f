import { createInterface, type Interface } from "node:readline";

const clearToEnd = "\u001B[J";

/** A line, or why there is none: the input has ended, or the wait was aborted. */
export type LineRead = { readonly line: string } | "ended" | "aborted";

export interface NextOptions {
  /** Aborts the wait. */
  readonly signal?: AbortSignal | undefined;
  /** Text to edit; on a terminal only. */
  readonly prefill?: string | undefined;
}

/** Lines that a person types, or that come from a pipe. */
export interface LineInput {
  /** The next line. One caller at a time. */
  next(prompt: string, options?: NextOptions): Promise<LineRead>;
  close(): void;
}

interface LineInputOptions {
  readonly input: NodeJS.ReadableStream;
  readonly output: NodeJS.WritableStream;
  /** False for a pipe: then prompt and line are written to the output, so that it reads as a conversation. */
  readonly isTerminal: boolean;
  /** Ctrl-C, which comes as a key while lines are edited. */
  readonly onInterrupt: () => void;
  /** Gets a line that no caller waits for, and returns whether it has handled it. Other lines are kept for the next caller. */
  readonly onUnasked?: ((line: string) => boolean) | undefined;
}

/**
 * Lines of a stream, each handed out once.
 * Owns: the lines that no caller has taken. Does not own: the streams.
 *
 * Invariants
 * 1. No line is lost: lines are handed out before the end of the stream is.
 * 2. A wait that is aborted takes no line.
 */
export class ReadlineInput implements LineInput {
  readonly #options: LineInputOptions;
  readonly #readline: Interface;
  readonly #lines: string[] = [];
  #waiter: ((read: LineRead) => void) | undefined;
  #hasEnded = false;

  constructor(options: LineInputOptions) {
    this.#options = options;
    const { input, output, isTerminal } = options;
    this.#readline = createInterface({ input, ...(isTerminal ? { output } : {}), terminal: isTerminal });
    this.#readline.on("line", (line) => this.#take(line));
    this.#readline.on("close", () => {
      this.#hasEnded = true;
      this.#waiter?.("ended");
    });
    this.#readline.on("SIGINT", options.onInterrupt);
  }

  async next(prompt: string, { signal, prefill }: NextOptions = {}): Promise<LineRead> {
    if (signal?.aborted === true) return "aborted";
    const { output, isTerminal } = this.#options;
    const kept = this.#lines.shift();
    if (kept === undefined && this.#hasEnded) return "ended";
    if (kept === undefined && isTerminal) {
      this.#readline.setPrompt(prompt);
      this.#readline.prompt();
      if (prefill !== undefined) this.#readline.write(prefill);
    }
    const read = kept === undefined ? await this.#wait(signal) : { line: kept };
    if (typeof read === "object" && (!isTerminal || kept !== undefined)) output.write(`${prompt}${read.line}\n`);
    if (typeof read !== "object" && isTerminal) output.write("\n");
    return read;
  }

  /** Writes whole lines above the prompt. */
  write(text: string): void {
    const { output, isTerminal } = this.#options;
    const isTyping = isTerminal && this.#waiter !== undefined;
    output.write(isTyping ? `\r${clearToEnd}${text}` : text);
    if (isTyping) this.#readline.prompt(true);
  }

  close(): void {
    this.#readline.close();
  }

  async #wait(signal: AbortSignal | undefined): Promise<LineRead> {
    const { promise, resolve } = Promise.withResolvers<LineRead>();
    const onAbort = (): void => resolve("aborted");
    signal?.addEventListener("abort", onAbort, { once: true });
    this.#waiter = resolve;
    try {
      return await promise;
    } finally {
      this.#waiter = undefined;
      signal?.removeEventListener("abort", onAbort);
    }
  }

  #take(line: string): void {
    const waiter = this.#waiter;
    this.#waiter = undefined;
    if (waiter !== undefined) waiter({ line });
    else if (this.#options.onUnasked?.(line) !== true) this.#lines.push(line);
  }
}
