import { setImmediate as loopTurn } from "node:timers/promises";
import { createFakeClock, type FakeClock } from "../fake-clock.ts";
import { QuietTurns } from "../quiet-turns.ts";
import type { Reach } from "./reach.ts";

const LONGEST_STEP_MS = 1_000;
/**
 * Time also advances after this many turns with only store calls, because an agent restored after each commit keeps
 * calling.
 */
const BUSY_TURNS = 100;
const BUSY_STEP_MS = 10;
/** Default of `stuckMs`. */
const STUCK_MS = 180_000;

/** What happens around a process. */
export interface WatchedWorld {
  /** Increases with every activity. If it stays constant, the process waits for a decision or for time. */
  readonly activity: number;
  /** Increases only with activities that the user's code and waiters see. */
  readonly progress: number;
  /** Whether the process has died. */
  readonly isOver: boolean;
  /**
   * Called before time advances by this many milliseconds: gives code that waits for neither the clock nor the stores the time to
   * continue. Default: none.
   */
  idle?(ms: number): Promise<void>;
  /** Called in each turn of the event loop, after time has possibly advanced. */
  noteTime(): void;
}

/** A process with a fake clock, which advances only while the process waits for nothing else. */
export interface HandMoved {
  /** Its clock. */
  readonly clock: FakeClock;
  /** What happens around it. */
  readonly world: WatchedWorld;
  /** Its stores. */
  readonly reach: Reach;
  /** Longest time without progress, in milliseconds of the fake clock. Default 180,000. */
  readonly stuckMs?: number;
}

/** A clock that continues from the time at which an earlier process of the same programs ended. */
export function clockFrom(at: number | undefined): FakeClock {
  return at === undefined ? createFakeClock() : createFakeClock(at);
}

/**
 * Advances time until the work has ended or the process has died. Returns `false` if the programs make no progress but have
 * not ended.
 */
export async function passTime(
  { clock, world, reach, stuckMs = STUCK_MS }: HandMoved,
  work: Promise<unknown>,
): Promise<boolean> {
  let isOver = false;
  const end = (): void => {
    isOver = true;
  };
  work.then(end, end);
  const quietTurns = new QuietTurns();
  let [progress, since, turns] = [-1, clock.elapsed(), 0];
  while (!isOver && !world.isOver) {
    await reach.answered();
    await loopTurn();
    const activity = world.activity + reach.activity;
    const isQuiet = quietTurns.turn(activity);
    turns += 1;
    if (world.progress !== progress) [progress, since, turns] = [world.progress, clock.elapsed(), 0];
    if (clock.elapsed() - since > stuckMs) return false;
    const next = clock.nextTimerAt() ?? Number.POSITIVE_INFINITY;
    const due = Math.max(1, Math.min(next - clock.now(), LONGEST_STEP_MS));
    if (!isQuiet) {
      if (turns % BUSY_TURNS === 0) clock.advance(Math.min(due, BUSY_STEP_MS));
    } else {
      await world.idle?.(due);
      if (activity === world.activity + reach.activity) clock.advance(due);
    }
    world.noteTime();
  }
  return true;
}
