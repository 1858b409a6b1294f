/** The part of a process that the watchers use. */
export interface SignalSource {
  on(signal: NodeJS.Signals, listener: () => void): unknown;
  off(signal: NodeJS.Signals, listener: () => void): unknown;
}

interface InterruptHandlers {
  /** Ctrl-C for the first time. */
  readonly pause: () => void;
  /** Ctrl-C again, or a signal to end. */
  readonly leave: (exitCode: number) => void;
}

/**
 * Two signals within this time count as one, in milliseconds: a terminal sends Ctrl-C to npm and to this process, and npm
 * forwards it.
 */
export const sameInterruptMs = 400;

/** Pauses on Ctrl-C, leaves on a second one or another signal. `now` is a monotonic clock in milliseconds. */
export function watchInterrupts(source: SignalSource, handlers: InterruptHandlers, now: () => number): () => void {
  let pausedAt: number | undefined;
  return onSignals(source, (signal, exitCode) => {
    if (signal !== "SIGINT") handlers.leave(exitCode);
    else if (pausedAt === undefined) {
      pausedAt = now();
      handlers.pause();
    } else if (now() - pausedAt >= sameInterruptMs) handlers.leave(exitCode);
  });
}

interface ChatInterruptHandlers {
  /** The first Ctrl-C since the last typed line. */
  readonly abort: () => void;
  /** Ctrl-C again, or a signal to end. */
  readonly leave: (exitCode: number) => void;
}

/**
 * Ctrl-C in a chat, as a key or as a signal: once aborts, twice leaves. A typed line in between starts the count again.
 * `now` is a monotonic clock in milliseconds.
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
    else if (this.#now() - heardAt >= sameInterruptMs) this.#handlers.leave(signalExitCodes.SIGINT);
  }

  typed(): void {
    this.#heardAt = undefined;
  }

  /** Listens for signals until the returned function is called. */
  watch(source: SignalSource): () => void {
    return onSignals(source, (signal, exitCode) => {
      if (signal === "SIGINT") this.interrupt();
      else this.#handlers.leave(exitCode);
    });
  }
}

interface LeavingHandlers {
  /** The first signal to end. */
  readonly leave: (signal: NodeJS.Signals) => void;
  /** A second signal: leave at once with this exit code. */
  readonly leaveAtOnce: (exitCode: number) => void;
}

/** Tells a worker to leave on a signal, and to leave at once on a second one. The returned function stops listening. */
export function watchLeaving(source: SignalSource, handlers: LeavingHandlers, now: () => number): () => void {
  let firstAt: number | undefined;
  return onSignals(source, (signal, exitCode) => {
    if (firstAt === undefined) {
      firstAt = now();
      handlers.leave(signal);
    } else if (now() - firstAt >= sameInterruptMs) handlers.leaveAtOnce(exitCode);
  });
}

const signalExitCodes = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const;
type EndSignal = keyof typeof signalExitCodes;

function onSignals(source: SignalSource, heard: (signal: EndSignal, exitCode: number) => void): () => void {
  const signals = Object.keys(signalExitCodes) as EndSignal[];
  const listeners = signals.map((signal) => [signal, () => heard(signal, signalExitCodes[signal])] as const);
  for (const [signal, listener] of listeners) source.on(signal, listener);
  return () => {
    for (const [signal, listener] of listeners) source.off(signal, listener);
  };
}
