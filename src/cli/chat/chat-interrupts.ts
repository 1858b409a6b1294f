import { sameInterruptMs, type SignalSource } from "../job/interrupts.ts";

export interface ChatInterruptHandlers {
  /** Ctrl-C for the first time since something was typed. */
  readonly abort: () => void;
  /** Ctrl-C again, or a request to end: with the exit code that is due. */
  readonly leave: (exitCode: number) => void;
}

/**
 * Ctrl-C in a chat, as a key or as a signal: once aborts, twice leaves, and whatever is typed between makes it the first
 * again. `now` in milliseconds, of any origin.
 */
export class ChatInterrupts {
  readonly #handlers: ChatInterruptHandlers;
  readonly #now: () => number;
  #heardAt: number | undefined;

  constructor(handlers: ChatInterruptHandlers, now: () => number) {
    this.#handlers = handlers;
    this.#now = now;
  }

  interrupt(): void {
    const heardAt = this.#heardAt;
    this.#heardAt ??= this.#now();
    if (heardAt === undefined) this.#handlers.abort();
    else if (this.#now() - heardAt >= sameInterruptMs) this.#handlers.leave(130);
  }

  typed(): void {
    this.#heardAt = undefined;
  }

  /** Listens for signals until the returned function is called. */
  watch(source: SignalSource): () => void {
    const heard = [
      ["SIGINT", () => this.interrupt()],
      ["SIGTERM", () => this.#handlers.leave(143)],
      ["SIGHUP", () => this.#handlers.leave(129)],
    ] as const;
    for (const [signal, listener] of heard) source.on(signal, listener);
    return () => {
      for (const [signal, listener] of heard) source.off(signal, listener);
    };
  }
}
