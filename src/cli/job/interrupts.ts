import type { CliContext } from "../cli-context.ts";

/** The process's events that the watchers use. */
export interface SignalSource {
  on(signal: NodeJS.Signals, listener: () => void): unknown;
  off(signal: NodeJS.Signals, listener: () => void): unknown;
}

interface InterruptHandlers {
  /** Called at the first Ctrl-C. */
  readonly pause: () => void;
  /** Called at the second Ctrl-C, or at a signal to end. */
  readonly leave: (exitCode: number) => void;
}

/** How to interpret the timing of signals. */
export interface SignalTiming {
  /** A monotonic clock in milliseconds. */
  readonly now: () => number;
  /** True under npm, which may forward the Ctrl-C that the terminal has already sent to this process. */
  readonly isForwarded: boolean;
}

export function timingOf({ invocation }: Pick<CliContext, "invocation">): SignalTiming {
  return { now: () => performance.now(), isForwarded: invocation.script !== undefined };
}

/**
 * Time within which a repeated signal is npm's copy, in milliseconds: npm forwards immediately, faster than a person
 * presses a key again. Each signal has at most one copy; with some shells between npm and this process it has none.
 */
export const copyWithinMs = 50;

/** Pauses on Ctrl-C, leaves on a second one or another signal. */
export function watchInterrupts(source: SignalSource, handlers: InterruptHandlers, timing: SignalTiming): () => void {
  let hasPaused = false;
  return onSignals(source, timing, (signal, exitCode) => {
    if (signal !== "SIGINT" || hasPaused) return handlers.leave(exitCode);
    hasPaused = true;
    handlers.pause();
  });
}

interface ChatInterruptHandlers {
  /** Called at the first Ctrl-C since the last typed line. */
  readonly abort: () => void;
  /** Called at the second Ctrl-C, or at a signal to end. */
  readonly leave: (exitCode: number) => void;
}

/**
 * Ctrl-C in a chat, as a key or as a signal: the first aborts, the second leaves. A typed line in between resets the
 * count.
 */
export class ChatInterrupts {
  readonly #handlers: ChatInterruptHandlers;
  #hasAborted = false;

  constructor(handlers: ChatInterruptHandlers) {
    this.#handlers = handlers;
  }

  interrupt(): void {
    if (this.#hasAborted) return this.#handlers.leave(signalExitCodes.SIGINT);
    this.#hasAborted = true;
    this.#handlers.abort();
  }

  typed(): void {
    this.#hasAborted = false;
  }

  /** Listens for signals until the returned function is called. */
  watch(source: SignalSource, timing: SignalTiming): () => void {
    return onSignals(source, timing, (signal, exitCode) => {
      if (signal === "SIGINT") this.interrupt();
      else this.#handlers.leave(exitCode);
    });
  }
}

interface LeavingHandlers {
  /** Called at the first signal to end. */
  readonly leave: (signal: NodeJS.Signals) => void;
  /** Called at the second signal: leave at once with this exit code. */
  readonly leaveAtOnce: (exitCode: number) => void;
}

/** Calls `leave` at the first signal, and `leaveAtOnce` at the second. The returned function stops listening. */
export function watchLeaving(source: SignalSource, handlers: LeavingHandlers, timing: SignalTiming): () => void {
  let isLeaving = false;
  return onSignals(source, timing, (signal, exitCode) => {
    if (isLeaving) return handlers.leaveAtOnce(exitCode);
    isLeaving = true;
    handlers.leave(signal);
  });
}

/** Exit codes of processes ended by a signal: 128 plus its number. */
export const signalExitCodes = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const;
type EndSignal = keyof typeof signalExitCodes;

/** Calls `heard` at each signal to end; npm's copy of a signal is left out. The returned function stops listening. */
export function onSignals(
  source: SignalSource,
  { now, isForwarded }: SignalTiming,
  heard: (signal: EndSignal, exitCode: number) => void,
): () => void {
  let heardAt: number | undefined;
  const hear = (signal: EndSignal): void => {
    const isCopy = isForwarded && heardAt !== undefined && now() - heardAt < copyWithinMs;
    heardAt = isCopy ? undefined : now();
    if (!isCopy) heard(signal, signalExitCodes[signal]);
  };
  const signals = Object.keys(signalExitCodes) as EndSignal[];
  const listeners = signals.map((signal) => [signal, () => hear(signal)] as const);
  for (const [signal, listener] of listeners) source.on(signal, listener);
  return () => {
    for (const [signal, listener] of listeners) source.off(signal, listener);
  };
}
