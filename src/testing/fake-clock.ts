import { AsyncResource } from "node:async_hooks";
import { isDate } from "node:util/types";
import {
  assertTimerDelay,
  assertTimerTime,
  type Clock,
  createTimerQueue,
  describeValue,
  hasMethods,
  sleepOn,
} from "../base/index.ts";
import { InvalidInputError, InvariantError } from "../errors/index.ts";
import { runUntil } from "./run-until.ts";
import { WorkUnderWay } from "./work-under-way.ts";

/**
 * A clock that only tests advance: by hand, or by itself until a promise has settled. Timers run inside the call that advances it, each
 * in the async context in which it was set, like real timers.
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
  /**
   * Passes time by itself until the promise has settled, and returns its value: whenever nothing in the runtimes with this clock can
   * continue, the time is that of the next timer. It stands still while models, tools, hooks or stores work, except for work that waits
   * in `sleep()` of this clock. Rejects with the promise's error, and with `InvalidInputError` if the promise waits for something that
   * time does not bring, such as a decision of a person.
   */
  runUntil<Value>(promise: PromiseLike<Value>): Promise<Value>;
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
  const work = new WorkUnderWay();
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

  function advance(ms: number): void {
    if (!(ms >= 0) || !Number.isFinite(ms)) {
      throw new InvalidInputError(
        `advance(${describeValue(ms)}): expected a finite number of milliseconds from 0; to set the clock back, use jump()`,
      );
    }
    const left = runDue(ms);
    time += left;
    passed += left;
  }

  return {
    work,
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
      return work.waiting(() => sleepOn(this, ms, signal));
    },
    get pendingTimers() {
      return timers.size + delays.size;
    },
    nextTimerAt() {
      const wait = nextIn();
      return wait === undefined ? undefined : time + wait;
    },
    advance,
    jump(ms) {
      if (!Number.isFinite(ms))
        throw new InvalidInputError(`jump(${describeValue(ms)}): expected a finite number of milliseconds`);
      time += ms;
      runDue(0);
    },
    async runUntil(promise) {
      if (!hasMethods(promise, ["then"])) {
        throw new InvalidInputError(
          `runUntil(${describeValue(promise)}): expected a promise, such as the result of a turn or of runCase()`,
        );
      }
      return await runUntil({ work, elapsed: () => passed, nextIn, advance }, promise);
    },
  };
}
