import { InvalidInputError } from "../errors/index.ts";
import { createTimerQueue } from "./timer-queue.ts";

/** Time as a port. Everything that reads the time or waits for one takes a clock, so tests can hand in theirs. */
export interface Clock {
  /** Milliseconds since the epoch. It may jump, in both directions. */
  now(): number;
  /**
   * Calls back once, when `now()` has reached `at` (milliseconds since the epoch), never within this call, and at once
   * when `at` has passed. Returns what cancels the timer. A timer does not keep the process alive.
   * @throws InvalidInputError when `at` is not a finite number.
   */
  setTimer(at: number, callback: () => void): () => void;
}

/**
 * The clock is read again at least this often while timers wait, in milliseconds: a timer is late by no more than this
 * after the clock was set or the machine slept. It also keeps every wait far below the 2^31-1 ms that setTimeout takes.
 */
export const clockTickMs = 250;

/**
 * The system's clock. It owns one Node timer for all timers set on it.
 *
 * 1. A callback runs only when the clock shows its time or a later one, earlier times first.
 * 2. A callback that throws takes no other with it: the error surfaces as uncaught, the others still run.
 * 3. Nothing ticks while no timer waits.
 */
export function createSystemClock(): Clock {
  const queue = createTimerQueue();
  let ticker: NodeJS.Timeout | undefined;

  function arm(): void {
    clearTimeout(ticker);
    const at = queue.nextAt();
    ticker = at === undefined ? undefined : setTimeout(tick, Math.min(Math.max(at - Date.now(), 0), clockTickMs));
    ticker?.unref();
  }

  function tick(): void {
    // Timers that a callback sets wait for the next tick: one that sets itself again may not block the event loop.
    const addedBefore = queue.added;
    try {
      for (;;) {
        const callback = queue.takeDue(Date.now(), addedBefore);
        if (callback === undefined) break;
        callback();
      }
    } finally {
      arm();
    }
  }

  return {
    now: () => Date.now(),
    setTimer(at, callback) {
      assertTimerTime(at);
      const next = queue.nextAt();
      const remove = queue.add(at, callback);
      if (next === undefined || at < next) arm();
      return () => {
        remove();
        if (queue.size === 0) arm();
      };
    },
  };
}

export const systemClock: Clock = createSystemClock();

/** @throws InvalidInputError when `at` is not a finite number. */
export function assertTimerTime(at: number): void {
  if (Number.isFinite(at)) return;
  throw new InvalidInputError(`a timer was set for ${at}; it must be a finite number of milliseconds since the epoch`);
}
