import { AsyncResource } from "node:async_hooks";
import { isDate } from "node:util/types";
import {
  assertTimerDelay,
  assertTimerTime,
  type Clock,
  createTimerQueue,
  describeValue,
  sleepOn,
} from "../base/index.ts";
import { InvalidInputError, InvariantError } from "../errors/index.ts";

/**
 * A clock that only tests advance. Timers run inside the call that advances it, each in the async context in which it
 * was set, like real timers.
 */
export interface FakeClock extends Clock {
  /** Number of pending timers and delays. */
  readonly pendingTimers: number;
  /** Time when the next timer is due unless the clock is set; `undefined` without timers. */
  nextTimerAt(): number | undefined;
  /**
   * Advances the time by this many milliseconds (0 or more). Timers run in the order of their times, and each reads its
   * own time from `now()`; timers that are set meanwhile also run if they are due in time.
   */
  advance(ms: number): void;
  /**
   * Sets the clock forward or back by `ms`, like a person or a time server, without passing time: `elapsed()` is
   * unchanged. Overdue timers then run, and read the new time.
   */
  jump(ms: number): void;
}

/** Maximum number of timers that one call runs: a timer that sets itself again for the same time would run forever. */
const maxTimersPerCall = 100_000;

/** @param given A date, or milliseconds since the epoch. Default: the beginning of 2026, UTC. */
export function createFakeClock(given: number | Date = Date.UTC(2026, 0, 1)): FakeClock {
  const start = isDate(given) ? given.getTime() : given;
  if (typeof start !== "number" || !Number.isFinite(start)) {
    throw new InvalidInputError(
      `createFakeClock() starts at ${describeValue(start)}; expected a valid date, or milliseconds since the epoch`,
    );
  }
  const timers = createTimerQueue();
  const delays = createTimerQueue();
  let time = start;
  let passed = start;

  /** Milliseconds until the next timer is due; at least 0. */
  function nextIn(): number | undefined {
    const [at, end] = [timers.nextAt(), delays.nextAt()];
    const waits = [at === undefined ? [] : at - time, end === undefined ? [] : end - passed].flat();
    return waits.length === 0 ? undefined : Math.max(0, Math.min(...waits));
  }

  /** Advances at most `ms`, timer by timer; returns the rest. */
  function runDue(ms: number): number {
    let left = ms;
    for (let count = 0; ; count += 1) {
      const wait = nextIn();
      if (wait === undefined || wait > left) return left;
      if (count >= maxTimersPerCall) {
        throw new InvariantError(`more than ${maxTimersPerCall} timers ran until ${time}: one sets itself forever`);
      }
      time += wait;
      passed += wait;
      left -= wait;
      const callback = timers.takeDue(time) ?? delays.takeDue(passed);
      callback?.();
    }
  }

  return {
    now: () => time,
    elapsed: () => passed,
    setTimer(at, callback) {
      assertTimerTime(at);
      return timers.add(at, AsyncResource.bind(callback));
    },
    setDelay(ms, callback) {
      assertTimerDelay(ms);
      return delays.add(passed + Math.ceil(ms), AsyncResource.bind(callback));
    },
    sleep(ms, signal) {
      return sleepOn(this, ms, signal);
    },
    get pendingTimers() {
      return timers.size + delays.size;
    },
    nextTimerAt() {
      const wait = nextIn();
      return wait === undefined ? undefined : time + wait;
    },
    advance(ms) {
      if (!(ms >= 0) || !Number.isFinite(ms)) {
        throw new InvalidInputError(
          `advance(${describeValue(ms)}): expected a finite number of milliseconds from 0; to set the clock back, use jump()`,
        );
      }
      const left = runDue(ms);
      time += left;
      passed += left;
    },
    jump(ms) {
      if (!Number.isFinite(ms))
        throw new InvalidInputError(`jump(${describeValue(ms)}): expected a finite number of milliseconds`);
      time += ms;
      runDue(0);
    },
  };
}
