import { setImmediate as loopTurn } from "node:timers/promises";
import { InvalidInputError } from "../errors/index.ts";
import { QuietTurns } from "./quiet-turns.ts";
import type { WorkUnderWay } from "./work-under-way.ts";

/** Most steps of time during which only timers of the runtime run. Without an open turn it has one an hour. */
const MOST_IDLE_STEPS = 10_000;

interface MovedClock {
  readonly work: WorkUnderWay;
  elapsed(): number;
  /** Milliseconds until the next timer is due; `undefined` if there is none. */
  nextIn(): number | undefined;
  advance(ms: number): void;
}

/**
 * Passes time until the promise has settled: whenever nothing else can continue, to the next timer. Rejects with `InvalidInputError` if
 * only timers of the runtime run, so that the promise waits for something that time does not bring.
 */
export async function runUntil<Value>(clock: MovedClock, promise: PromiseLike<Value>): Promise<Value> {
  const { work } = clock;
  let isOver = false;
  const { promise: over, resolve } = Promise.withResolvers<void>();
  const end = (): void => {
    isOver = true;
    resolve();
  };
  promise.then(end, end);
  const turns = new QuietTurns();
  let [steps, idle, since] = [0, 0, clock.elapsed()];
  while (!isOver) {
    await loopTurn();
    if (isOver) break;
    if (work.isBusy) {
      await Promise.race([work.changed(), over]);
      continue;
    }
    if (!turns.turn(work.changes + steps)) continue;
    const next = clock.nextIn();
    if (next === undefined) {
      await Promise.race([work.changed(), over]);
      continue;
    }
    if (work.isUnderWay) [idle, since] = [0, clock.elapsed()];
    else idle += 1;
    if (idle > MOST_IDLE_STEPS) throw stuckError(clock.elapsed() - since);
    clock.advance(next);
    steps += 1;
  }
  return await promise;
}

function stuckError(ms: number): InvalidInputError {
  const hours = Math.round(ms / 3_600_000);
  return new InvalidInputError(
    `runUntil(): ${hours} hours of the clock have passed, and no model, tool or hook was called; the promise waits for something other than time, such as a decision of a person`,
  );
}
