/** What the watch needs of a process. */
export interface SignalSource {
  on(signal: NodeJS.Signals, listener: () => void): unknown;
  off(signal: NodeJS.Signals, listener: () => void): unknown;
}

export interface InterruptHandlers {
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
