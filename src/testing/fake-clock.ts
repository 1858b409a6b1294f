import { AsyncResource } from "node:async_hooks";
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
 * A clock that moves only when a test moves it. Timers run inside the call that moves it, each in the async context in which it
 * was set, as real timers do.
 */
export interface FakeClock extends Clock {
  /** How many timers and delays wait. */
  readonly pendingTimers: number;
  /** When the next of them is due if the test does not set the clock; `undefined` when none waits. */
  nextTimerAt(): number | undefined;
  /**
   * Lets time pass, in milliseconds (0 or more). Timers run in the order of their times, and each sees its own time as
   * `now()`; those that are set on the way run as well, if they are due before the end.
   */
  advance(ms: number): void;
  /**
   * Sets the clock forward or back by `ms`, as a person or a time server does, without letting time pass: `elapsed()`
   * stays. Timers that are overdue then run, and see the new time.
   */
  jump(ms: number): void;
}

/** One call may run at most this many timers: a timer that sets itself again for the same time would run for ever. */
const maxTimersPerCall = 100_000;

/** @param start Milliseconds since the epoch. Default: the beginning of 2026, UTC. */
export function createFakeClock(start: number = Date.UTC(2026, 0, 1)): FakeClock {
  if (typeof start !== "number" || !Number.isFinite(start)) {
    throw new InvalidInputError(
      `createFakeClock() starts at ${describeValue(start)}; it takes milliseconds since the epoch`,
    );
  }
  const timers = createTimerQueue();
  const delays = createTimerQueue();
  let time = start;
  let passed = start;

  /** How long it takes until the next one is due; not below 0. */
  function nextIn(): number | undefined {
    const [at, end] = [timers.nextAt(), delays.nextAt()];
    const waits = [at === undefined ? [] : at - time, end === undefined ? [] : end - passed].flat();
    return waits.length === 0 ? undefined : Math.max(0, Math.min(...waits));
  }

  /** Lets at most `ms` pass, timer by timer; gives what is left. */
  function runDue(ms: number): number {
    let left = ms;
    for (let count = 0; ; count += 1) {
      const wait = nextIn();
      if (wait === undefined || wait > left) return left;
      if (count >= maxTimersPerCall) {
        throw new InvariantError(`more than ${maxTimersPerCall} timers ran until ${time}: one sets itself for ever`);
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
          `advance(${describeValue(ms)}): time passes by a finite number of milliseconds from 0; use jump()`,
        );
      }
      const left = runDue(ms);
      time += left;
      passed += left;
    },
    jump(ms) {
      if (!Number.isFinite(ms))
        throw new InvalidInputError(`jump(${describeValue(ms)}): a finite number of milliseconds is needed`);
      time += ms;
      runDue(0);
    },
  };
}
