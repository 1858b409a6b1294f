import { assertTimerTime, type Clock, createTimerQueue } from "../base/index.ts";
import { InvalidInputError, InvariantError } from "../errors/index.ts";

/** A clock that moves only when it is told to. Timers run inside the call that moves it. */
export interface FakeClock extends Clock {
  /** How many timers wait. */
  readonly pendingTimers: number;
  /** When the next timer is due; undefined when none waits. */
  nextTimerAt(): number | undefined;
  /**
   * Lets time pass, in milliseconds (0 or more). Timers run in the order of their times, and each sees its own time as
   * `now()`; those that are set on the way run as well, if they are due before the end.
   */
  advance(ms: number): void;
  /**
   * Sets the clock forward or back by `ms`, as a person or a time server does, without letting time pass. Timers that
   * are overdue then run, and see the new time.
   */
  jump(ms: number): void;
}

/** One call may run at most this many timers: a timer that sets itself again for the same time would run for ever. */
const maxTimersPerCall = 100_000;

/** @param start Milliseconds since the epoch. Default: the beginning of 2026, UTC. */
export function createFakeClock(start: number = Date.UTC(2026, 0, 1)): FakeClock {
  const queue = createTimerQueue();
  let time = start;

  function runDue(end: number): void {
    for (let count = 0; ; count += 1) {
      const at = queue.nextAt();
      const callback = queue.takeDue(end);
      if (at === undefined || callback === undefined) return;
      if (count >= maxTimersPerCall) {
        throw new InvariantError(`more than ${maxTimersPerCall} timers ran until ${end}: one sets itself for ever`);
      }
      time = Math.max(time, at);
      callback();
    }
  }

  return {
    now: () => time,
    setTimer(at, callback) {
      assertTimerTime(at);
      return queue.add(at, callback);
    },
    get pendingTimers() {
      return queue.size;
    },
    nextTimerAt: () => queue.nextAt(),
    advance(ms) {
      if (!(ms >= 0) || !Number.isFinite(ms)) {
        throw new InvalidInputError(
          `advance(${ms}): time passes by a finite number of milliseconds from 0; use jump()`,
        );
      }
      const end = time + ms;
      runDue(end);
      time = Math.max(time, end);
    },
    jump(ms) {
      if (!Number.isFinite(ms)) throw new InvalidInputError(`jump(${ms}): a finite number of milliseconds is needed`);
      time += ms;
      runDue(time);
    },
  };
}
