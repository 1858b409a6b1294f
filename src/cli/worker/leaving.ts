import { sameInterruptMs, type SignalSource } from "../job/interrupts.ts";

export interface LeavingHandlers {
  /** Somebody wants this process to end. */
  readonly leave: (signal: NodeJS.Signals) => void;
  /** They want it again: at once, with the exit code that is due. */
  readonly leaveAtOnce: (exitCode: number) => void;
}

const exitCodes = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const;

/**
 * Listens for requests to end until the returned function is called. Two within `sameInterruptMs` are one, as a terminal sends
 * Ctrl-C to npm and to this process. `now` in milliseconds, of any origin.
 */
export function watchLeaving(source: SignalSource, handlers: LeavingHandlers, now: () => number): () => void {
  let firstAt: number | undefined;
  const listeners = Object.entries(exitCodes).map(([name, exitCode]) => {
    const signal = name as keyof typeof exitCodes;
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
