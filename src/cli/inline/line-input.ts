import { createInterface, type Interface } from "node:readline";

const clearToEnd = "\u001B[J";

/** A line, or why none was read: the input has ended, or the wait was aborted. */
export type LineRead = { readonly line: string } | "ended" | "aborted";

export interface NextOptions {
  /** Aborts the wait. */
  readonly signal?: AbortSignal | undefined;
  /** Initial text to edit; only on a terminal. */
  readonly prefill?: string | undefined;
}

/** Lines from a person or a pipe. */
export interface LineInput {
  /** Reads the next line. A caller that comes while another one waits is served first; then the prompt of the other is shown again. */
  next(prompt: string, options?: NextOptions): Promise<LineRead>;
  /** Writes complete lines above the prompt. */
  write(text: string): void;
  /** The half-typed line. */
  draft(): string;
  /** Puts back the half-typed line of an earlier process; only on a terminal. */
  restore(draft: string): void;
  close(): void;
}

interface Waiter {
  readonly prompt: string;
  readonly resolve: (read: LineRead) => void;
}

interface LineInputOptions {
  readonly input: NodeJS.ReadableStream;
  readonly output: NodeJS.WritableStream;
  /** False for a pipe: prompt and line are then written to the output, so that it reads like a conversation. */
  readonly isTerminal: boolean;
  /** Handles Ctrl-C, which arrives as a key while lines are edited. */
  readonly onInterrupt: () => void;
  /**
   * Called for a line without a waiting caller; returns whether it has handled the line. Other lines are kept for the
   * next caller.
   */
  readonly onUnasked?: ((line: string) => boolean) | undefined;
  /** Whether Ctrl-Z is ignored, because the shell waits for another process than this one. Default: false. */
  readonly ignoresSuspend?: boolean | undefined;
}

/**
 * Lines of a stream, each returned once.
 * Owns: the lines that no caller has read. Does not own: the streams.
 *
 * Invariants
 * 1. No line is lost: all lines are returned before the end of the stream.
 * 2. An aborted wait consumes no line.
 * 3. A line is for the caller that came last, whose prompt is shown.
 */
export class ReadlineInput implements LineInput {
  readonly #options: LineInputOptions;
  readonly #readline: Interface;
  readonly #lines: string[] = [];
  readonly #waiters: Waiter[] = [];
  #hasEnded = false;

  constructor(options: LineInputOptions) {
    this.#options = options;
    const { input, output, isTerminal, ignoresSuspend = false } = options;
    this.#readline = createInterface({ input, ...(isTerminal ? { output } : {}), terminal: isTerminal });
    this.#readline.on("line", (line) => this.#take(line));
    this.#readline.on("close", () => {
      this.#hasEnded = true;
      for (const { resolve } of this.#waiters) resolve("ended");
    });
    this.#readline.on("SIGINT", options.onInterrupt);
    if (ignoresSuspend) this.#readline.on("SIGTSTP", () => undefined);
  }

  async next(prompt: string, { signal, prefill }: NextOptions = {}): Promise<LineRead> {
    if (signal?.aborted === true) return "aborted";
    const { output, isTerminal } = this.#options;
    const kept = this.#lines.shift();
    if (kept === undefined && this.#hasEnded) return "ended";
    if (kept === undefined && isTerminal) {
      this.#readline.setPrompt(prompt);
      // Keeps what was typed before the prompt, with its cursor.
      this.#readline.prompt(true);
      if (prefill !== undefined) this.#readline.write(prefill);
    }
    const read = kept === undefined ? await this.#wait(prompt, signal) : { line: kept };
    if (typeof read === "object" && (!isTerminal || kept !== undefined)) output.write(`${prompt}${read.line}\n`);
    if (typeof read !== "object" && isTerminal) output.write("\n");
    return read;
  }

  write(text: string): void {
    const { output, isTerminal } = this.#options;
    const isTyping = isTerminal && this.#waiters.length > 0;
    output.write(isTyping ? `\r${clearToEnd}${text}` : text);
    if (isTyping) this.#readline.prompt(true);
  }

  draft(): string {
    return this.#options.isTerminal && !this.#hasEnded ? this.#readline.line : "";
  }

  restore(draft: string): void {
    if (this.#options.isTerminal && draft !== "") this.#readline.write(draft);
  }

  close(): void {
    // What follows begins on a line of its own.
    if (this.#waiters.length === 0 && this.draft() !== "") this.#options.output.write("\n");
    this.#readline.close();
  }

  async #wait(prompt: string, signal: AbortSignal | undefined): Promise<LineRead> {
    const { promise, resolve } = Promise.withResolvers<LineRead>();
    const waiter = { prompt, resolve };
    const onAbort = (): void => resolve("aborted");
    signal?.addEventListener("abort", onAbort, { once: true });
    this.#waiters.push(waiter);
    try {
      return await promise;
    } finally {
      this.#remove(waiter);
      signal?.removeEventListener("abort", onAbort);
    }
  }

  #remove(waiter: Waiter): void {
    const index = this.#waiters.indexOf(waiter);
    if (index >= 0) this.#waiters.splice(index, 1);
    const other = this.#waiters.at(-1);
    if (index < 0 || other === undefined || !this.#options.isTerminal || this.#hasEnded) return;
    this.#readline.setPrompt(other.prompt);
    this.#readline.prompt(true);
  }

  #take(line: string): void {
    const waiter = this.#waiters.at(-1);
    if (waiter !== undefined) {
      this.#remove(waiter);
      waiter.resolve({ line });
    } else if (this.#options.onUnasked?.(line) !== true) this.#lines.push(line);
  }
}
