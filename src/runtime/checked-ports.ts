import { type Clock, describeValue, systemClock, wordsOfThrown } from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import type { RuntimeOptions } from "./types.ts";

type Ports = Pick<RuntimeOptions, "clock" | "random" | "onInspect">;

/**
 * The small ports of a runtime, so that nothing of what they give or throw gets into a journal: times are whole milliseconds,
 * random numbers lie in [0, 1), and whoever looks on breaks nothing.
 * @throws InvalidInputError for a port that is none, and for a clock that shows no time.
 */
export function checkedPorts({ clock = systemClock, random, onInspect }: Ports) {
  return {
    clock: clock === systemClock ? clock : checkedClock(clock),
    ...(random === undefined ? {} : { random: checkedRandom(random) }),
    ...(onInspect === undefined ? {} : { onInspect: onlooker("onInspect", onInspect) }),
  };
}

/** A clock that shows no time stands still until it does. */
function checkedClock(clock: Clock): Clock {
  for (const method of ["now", "elapsed", "setTimer", "setDelay"] as const) {
    const given: unknown = (clock as Partial<Clock> | null)?.[method];
    if (typeof given === "function") continue;
    throw new InvalidInputError(
      `createRuntime({ clock }): ${method} is ${describeValue(given)}; it must be a function`,
    );
  }
  const now = steadily("now", clock.now(), () => clock.now());
  const elapsed = steadily("elapsed", clock.elapsed(), () => clock.elapsed());
  return {
    now,
    elapsed,
    setTimer: (at, callback) => clock.setTimer(at, callback),
    setDelay: (ms, callback) => clock.setDelay(ms, callback),
  };
}

function steadily(method: string, first: number, read: () => number): () => number {
  if (!isTime(first)) {
    const right = "it must give milliseconds, as a number from 0";
    throw new InvalidInputError(`createRuntime({ clock }): ${method}() gave ${describeValue(first)}; ${right}`);
  }
  let last = Math.floor(first);
  return () => {
    try {
      const time = read();
      if (isTime(time)) last = Math.floor(time);
    } catch {
      // As a time that is none.
    }
    return last;
  };
}

function isTime(value: unknown): value is number {
  return typeof value === "number" && value >= 0 && value <= Number.MAX_SAFE_INTEGER;
}

function checkedRandom(random: () => number): () => number {
  if (typeof random !== "function") {
    throw new InvalidInputError(`createRuntime({ random }) is ${describeValue(random)}; it must be a function`);
  }
  return () => {
    try {
      const value: unknown = random();
      if (typeof value === "number" && value >= 0 && value < 1) return value;
    } catch {
      // As a number that is none.
    }
    return Math.random();
  };
}

/** Calls somebody who only looks on; what it throws is told once. */
function onlooker<Given extends readonly unknown[]>(
  name: string,
  callback: (...given: Given) => void,
): (...given: Given) => void {
  let isTold = false;
  return (...given) => {
    try {
      callback(...given);
    } catch (error) {
      if (!isTold) process.emitWarning(`${name} failed, which changes nothing: ${wordsOfThrown(error)}`);
      isTold = true;
    }
  };
}
