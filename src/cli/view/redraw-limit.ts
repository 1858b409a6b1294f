import type { Clock } from "../../base/index.ts";

/** Shortest time between two drawings: ten a second at most. */
export const redrawMs = 100;
/** Longest time between two while work goes on, so that running times move. */
export const idleRedrawMs = 500;

export interface RedrawLimit {
  /** Something changed: draw soon. */
  request(): void;
  stop(): void;
}

/** Draws when asked, but never twice within `redrawMs`, and at least every `idleRedrawMs`. */
export function limitRedraws(clock: Clock, draw: () => void): RedrawLimit {
  let drawnAt = Number.NEGATIVE_INFINITY;
  let dueAt = Number.POSITIVE_INFINITY;
  let cancel: (() => void) | undefined;
  let isStopped = false;

  function arm(at: number): void {
    if (isStopped || at >= dueAt) return;
    cancel?.();
    dueAt = at;
    cancel = clock.setTimer(at, () => {
      dueAt = Number.POSITIVE_INFINITY;
      drawnAt = clock.now();
      draw();
      arm(drawnAt + idleRedrawMs);
    });
  }

  return {
    request() {
      const now = clock.now();
      // The clock may have been set back: a drawing in the future is none to wait for.
      arm(Math.max(now, Math.min(drawnAt, now) + redrawMs));
    },
    stop() {
      isStopped = true;
      cancel?.();
    },
  };
}
