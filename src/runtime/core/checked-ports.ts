import { type Clock, describeValue, hasMethods, sleepOn, systemClock } from "../../base/index.ts";
import { InvalidInputError } from "../../errors/index.ts";
import type { RuntimeOptions } from "../api/runtime-types.ts";

type Ports = Pick<RuntimeOptions, "clock" | "random">;

/**
 * Wraps the clock and the random source of a runtime or of a stateless turn, so that their invalid values or errors never reach a
 * journal: times are whole milliseconds, and random numbers are in [0, 1).
 * @throws InvalidInputError for a clock that returns an invalid time.
 */
export function checkedPorts({ clock = systemClock, random }: Ports) {
  return {
    clock: clock === systemClock ? clock : checkedClock(clock),
    ...(random === undefined ? {} : { random: checkedRandom(random) }),
  };
}

/** A clock that keeps its last time while the given clock returns an invalid one. */
function checkedClock(clock: Clock): Clock {
  const now = steadily("now", clock.now(), () => clock.now());
  const elapsed = steadily("elapsed", clock.elapsed(), () => clock.elapsed());
  const work = hasMethods(clock.work, ["during", "waiting"]) ? clock.work : undefined;
  return {
    now,
    elapsed,
    setTimer: (at, callback) => clock.setTimer(at, callback),
    setDelay: (ms, callback) => clock.setDelay(ms, callback),
    sleep: (ms, signal) => (work ? clock.sleep(ms, signal) : sleepOn(clock, ms, signal)),
    work,
  };
}

function steadily(method: string, first: number, read: () => number): () => number {
  if (!isTime(first)) {
    const right = "expected milliseconds, a number of at least 0";
    throw new InvalidInputError(`clock: ${method}() returned ${describeValue(first)}; ${right}`);
  }
  let last = Math.floor(first);
  return () => {
    try {
      const time = read();
      if (isTime(time)) last = Math.floor(time);
    } catch {
      // An error counts as an invalid time.
    }
    return last;
  };
}

function isTime(value: unknown): value is number {
  return typeof value === "number" && value >= 0 && value <= Number.MAX_SAFE_INTEGER;
}

function checkedRandom(random: () => number): () => number {
  return () => {
    try {
      const value: unknown = random();
      if (typeof value === "number" && value >= 0 && value < 1) return value;
    } catch {
      // An error counts as an invalid number.
    }
    return Math.random();
  };
}
