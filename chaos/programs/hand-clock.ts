import { setImmediate as loopTurn } from "node:timers/promises";
import { createFakeClock, type FakeClock } from "../../src/testing/index.ts";
import type { Reach } from "./reach.ts";
import type { World } from "./world.ts";

/** Turns of the event loop in which nothing may move before time passes. */
const QUIET_TURNS = 3;
const LONGEST_STEP_MS = 1_000;
/** Time passes too where the stores alone are asked for so many turns: an agent that is restored after each commit asks again and again. */
const BUSY_TURNS = 100;
const BUSY_STEP_MS = 10;
/** So long, in its own milliseconds, nothing may happen in a process that has something to do. */
const STUCK_MS = 180_000;

/** A process whose time passes by hand: only where it waits for nothing else. */
export interface HandMoved {
  readonly clock: FakeClock;
  readonly world: World;
  readonly reach: Reach;
}

/** A clock that goes on where an earlier process of the same programs has left its own. */
export function clockFrom(at: number | undefined): FakeClock {
  return at === undefined ? createFakeClock() : createFakeClock(at);
}

/**
 * Lets time pass until the work has ended or the process has died. Returns `false` if the programs do nothing any more and have
 * not ended.
 */
export async function passTime({ clock, world, reach }: HandMoved, work: Promise<unknown>): Promise<boolean> {
  let isOver = false;
  const end = (): void => {
    isOver = true;
  };
  work.then(end, end);
  let [seen, quiet] = [-1, 0];
  let [progress, since, turns] = [-1, clock.now(), 0];
  while (!isOver && !world.isOver) {
    await reach.answered();
    await loopTurn();
    const activity = world.activity + reach.activity;
    quiet = activity === seen ? quiet + 1 : 0;
    seen = activity;
    turns += 1;
    if (world.progress !== progress) [progress, since, turns] = [world.progress, clock.now(), 0];
    if (clock.now() - since > STUCK_MS) return false;
    const next = clock.nextTimerAt() ?? Number.POSITIVE_INFINITY;
    const due = Math.max(1, Math.min(next - clock.now(), LONGEST_STEP_MS));
    if (quiet >= QUIET_TURNS) clock.advance(due);
    else if (turns % BUSY_TURNS === 0) clock.advance(Math.min(due, BUSY_STEP_MS));
    world.noteTime();
  }
  return true;
}
