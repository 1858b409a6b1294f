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
  /** Reads the next line. Only one caller at a time. */
  next(prompt: string, options?: NextOptions): Promise<LineRead>;
  /** Writes complete lines above the prompt. */
  write(text: string): void;
  /** The half-typed line. */
  draft(): string;
  /** Puts back the half-typed line of an earlier process; only on a terminal. */
  restore(draft: string): void;
  close(): void;
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
 */
export class ReadlineInput implements LineInput {
  readonly #options: LineInputOptions;
  readonly #readline: Interface;
  readonly #lines: string[] = [];
  #waiter: ((read: LineRead) => void) | undefined;
  #hasEnded = false;

  constructor(options: LineInputOptions) {
    this.#options = options;
    const { input, output, isTerminal, ignoresSuspend = false } = options;
    this.#readline = createInterface({ input, ...(isTerminal ? { output } : {}), terminal: isTerminal });
    this.#readline.on("line", (line) => this.#take(line));
    this.#readline.on("close", () => {
      this.#hasEnded = true;
      this.#waiter?.("ended");
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
    const read = kept === undefined ? await this.#wait(signal) : { line: kept };
    if (typeof read === "object" && (!isTerminal || kept !== undefined)) output.write(`${prompt}${read.line}\n`);
    if (typeof read !== "object" && isTerminal) output.write("\n");
    return read;
  }

  write(text: string): void {
    const { output, isTerminal } = this.#options;
    const isTyping = isTerminal && this.#waiter !== undefined;
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
    if (this.#waiter === undefined && this.draft() !== "") this.#options.output.write("\n");
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
