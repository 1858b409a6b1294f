/** What the watch needs of a process. */
export interface SignalSource {
  on(signal: NodeJS.Signals, listener: () => void): unknown;
  off(signal: NodeJS.Signals, listener: () => void): unknown;
}

interface InterruptHandlers {
  /** Ctrl-C for the first time. */
  readonly pause: () => void;
  /** Ctrl-C again, or a request to end: with the exit code that is due. */
  readonly leave: (exitCode: number) => void;
}

/**
 * Two signals within this time are one: a terminal sends Ctrl-C to npm and to this process, and npm sends it on.
 * Milliseconds.
 */
export const sameInterruptMs = 400;

/** Listens for signals until the returned function is called. `now` in milliseconds, of any origin. */
export function watchInterrupts(source: SignalSource, handlers: InterruptHandlers, now: () => number): () => void {
  let pausedAt: number | undefined;
  const onInterrupt = (): void => {
    if (pausedAt === undefined) {
      pausedAt = now();
      handlers.pause();
    } else if (now() - pausedAt >= sameInterruptMs) handlers.leave(130);
  };
  const onTerminate = (): void => handlers.leave(143);
  const onHangUp = (): void => handlers.leave(129);
  source.on("SIGINT", onInterrupt);
  source.on("SIGTERM", onTerminate);
  source.on("SIGHUP", onHangUp);
  return () => {
    source.off("SIGINT", onInterrupt);
    source.off("SIGTERM", onTerminate);
    source.off("SIGHUP", onHangUp);
  };
}

interface ChatInterruptHandlers {
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

interface LeavingHandlers {
  /** Somebody wants this process to end. */
  readonly leave: (signal: NodeJS.Signals) => void;
  /** They want it again: at once, with the exit code that is due. */
  readonly leaveAtOnce: (exitCode: number) => void;
}

const signalExitCodes = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const;

/**
 * Listens for requests to end until the returned function is called. Two within `sameInterruptMs` are one, as a terminal sends
 * Ctrl-C to npm and to this process. `now` in milliseconds, of any origin.
 */
export function watchLeaving(source: SignalSource, handlers: LeavingHandlers, now: () => number): () => void {
  let firstAt: number | undefined;
  const listeners = Object.entries(signalExitCodes).map(([name, exitCode]) => {
    const signal = name as keyof typeof signalExitCodes;
    const listener = (): void => {
      if (firstAt === undefined) {
        firstAt = now();
        handlers.leave(signal);
      } else if (now() - firstAt >= sameInterruptMs) handlers.leaveAtOnce(exitCode);
    };
    source.on(signal, listener);
    return { signal, listener };
  });
  return () => {
    for (const { signal, listener } of listeners) source.off(signal, listener);
  };
}
