import { InvalidInputError } from "../errors/index.ts";
import { abortable } from "./waiting.ts";

/**
 * Time as a port: code that reads the time or waits takes a clock, so that tests can hand in theirs. A clock has two times:
 * wall time (`now`) for moments that people name, such as deadlines and stamps, and monotonic time (`elapsed`) for durations,
 * such as leases, working time and time-outs.
 */
export interface Clock {
  /** Milliseconds since the epoch. It may jump, in both directions. */
  now(): number;
  /**
   * Whole milliseconds since a fixed moment. It never jumps nor goes back, even if the system's clock is set, and is the
   * same for all processes of one boot of one machine.
   */
  elapsed(): number;
  /**
   * Calls back once, when `now()` has reached `at` (milliseconds since the epoch), never within this call. A time that has
   * passed already is due at once. Returns a function that cancels the timer. A timer does not keep the process alive.
   * @throws InvalidInputError when `at` is not a finite number.
   */
  setTimer(at: number, callback: () => void): () => void;
  /**
   * As `setTimer`, when `ms` milliseconds have passed by `elapsed()`: setting the system's clock does not change it.
   * @throws InvalidInputError when `ms` is not a finite number.
   */
  setDelay(ms: number, callback: () => void): () => void;
  /**
   * Resolves when `ms` milliseconds have passed by `elapsed()`, never at once. Rejects with the signal's reason when it
   * aborts, and leaves no timer behind. As a timer, it does not keep the process alive.
   * @throws InvalidInputError (as a rejection) when `ms` is not a finite number.
   */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** `sleep()` made of `setDelay()`. */
export async function sleepOn(clock: Pick<Clock, "setDelay">, ms: number, signal?: AbortSignal): Promise<void> {
  signal?.throwIfAborted();
  const over = Promise.withResolvers<void>();
  const cancel = clock.setDelay(ms, () => over.resolve());
  try {
    await abortable(over.promise, signal);
  } finally {
    cancel();
  }
}

/**
 * While timers wait the system's time is read at least this often, in milliseconds, so that a timer is at most this late
 * after the clock was set or the machine slept. It also keeps every wait far below the 2^31-1 ms that setTimeout takes.
 */
export const clockTickMs = 100;

/**
 * The system's clock. It owns one Node timer for all timers set on it.
 *
 * 1. A callback runs only when the clock shows its time or a later one, earlier times first.
 * 2. A callback that throws does not stop the others: its error is uncaught, the others still run.
 * 3. Nothing ticks while no timer waits.
 */
export function createSystemClock(): Clock {
  const timers = createTimerQueue();
  const delays = createTimerQueue();
  let ticker: NodeJS.Timeout | undefined;

  function arm(): void {
    clearTimeout(ticker);
    const [at, end] = [timers.nextAt(), delays.nextAt()];
    const waits = [at === undefined ? [] : at - Date.now(), end === undefined ? [] : end - elapsed()].flat();
    ticker = waits.length === 0 ? undefined : setTimeout(tick, Math.min(Math.max(Math.min(...waits), 0), clockTickMs));
    ticker?.unref();
  }

  function tick(): void {
    // Timers that a callback sets wait for the next tick, so that one that sets itself again does not block the event loop.
    const before = [timers.added, delays.added] as const;
    try {
      for (;;) {
        const callback = timers.takeDue(Date.now(), before[0]) ?? delays.takeDue(elapsed(), before[1]);
        if (callback === undefined) break;
        callback();
      }
    } finally {
      arm();
    }
  }

  function set(queue: typeof timers, at: number, callback: () => void): () => void {
    const next = queue.nextAt();
    const remove = queue.add(at, callback);
    if (next === undefined || at < next) arm();
    return () => {
      remove();
      if (timers.size === 0 && delays.size === 0) arm();
    };
  }

  return {
    now: () => Date.now(),
    elapsed,
    setTimer(at, callback) {
      assertTimerTime(at);
      return set(timers, at, callback);
    },
    setDelay(ms, callback) {
      assertTimerDelay(ms);
      return set(delays, elapsed() + Math.ceil(ms), callback);
    },
    sleep(ms, signal) {
      return sleepOn(this, ms, signal);
    },
  };
}

/** The time since the machine's boot, which all its processes share. */
function elapsed(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1_000 + Math.floor(nanoseconds / 1_000_000);
}

export const systemClock: Clock = createSystemClock();

/** @throws InvalidInputError when `at` is not a finite number. */
export function assertTimerTime(at: number): void {
  if (Number.isFinite(at)) return;
  throw new InvalidInputError(`a timer was set for ${at}; it must be a finite number of milliseconds since the epoch`);
}

/** @throws InvalidInputError when `ms` is not a finite number. */
export function assertTimerDelay(ms: number): void {
  if (Number.isFinite(ms)) return;
  throw new InvalidInputError(`a delay was set to ${ms}; it must be a finite number of milliseconds`);
}

const LONGEST_INTERVAL_MS = 2 ** 31 - 1;

let holders = 0;
let handle: NodeJS.Timeout | undefined;

/**
 * Keeps this process alive until the returned function is called. Timers of clocks do not, so a process with nothing to do
 * but wait for a time (the next attempt of a call) would end in the middle of its work.
 */
export function holdProcess(): () => void {
  holders += 1;
  // One timer for good: a turn that holds the process would make and clear its own.
  handle ??= setInterval(() => undefined, LONGEST_INTERVAL_MS);
  if (holders === 1) handle.ref();
  let isHeld = true;
  return () => {
    if (!isHeld) return;
    isHeld = false;
    holders -= 1;
    if (holders === 0) handle?.unref();
  };
}

/** A timer that waits for its time. Only the queue uses it. */
interface WaitingTimer {
  readonly at: number;
  readonly sequence: number;
  readonly callback: () => void;
  /** Its place in the heap, -1 once it has left. */
  place: number;
}

/**
 * A heap of timers in the order in which they are due; those of the same time in the order in which they were set. It
 * knows no clock. Adding and removing take logarithmic time, and a removed timer leaves nothing behind.
 */
export interface TimerQueue {
  readonly size: number;
  /** When the first timer is due; undefined when there is none. */
  nextAt(): number | undefined;
  /** Returns a function that removes the timer; it does nothing once the timer ran or was removed. */
  add(at: number, callback: () => void): () => void;
  /** How many timers were ever added, for `takeDue`. */
  readonly added: number;
  /** Takes the first timer out if it is due at `now` and was among the first `addedBefore` timers (default: all). */
  takeDue(now: number, addedBefore?: number): (() => void) | undefined;
}

export function createTimerQueue(): TimerQueue {
  const heap: WaitingTimer[] = [];
  let added = 0;

  function put(timer: WaitingTimer, place: number): void {
    heap[place] = timer;
    timer.place = place;
  }

  function rise(timer: WaitingTimer, from: number): void {
    let place = from;
    while (place > 0) {
      const above = (place - 1) >> 1;
      const parent = heap[above];
      if (parent === undefined || isBefore(parent, timer)) break;
      put(parent, place);
      place = above;
    }
    put(timer, place);
  }

  function sink(timer: WaitingTimer, from: number): void {
    let place = from;
    for (;;) {
      const left = heap[2 * place + 1];
      const right = heap[2 * place + 2];
      const child = left !== undefined && right !== undefined && isBefore(right, left) ? right : left;
      if (child === undefined || isBefore(timer, child)) break;
      const below = child.place;
      put(child, place);
      place = below;
    }
    put(timer, place);
  }

  function remove(timer: WaitingTimer): void {
    const { place } = timer;
    if (place < 0) return;
    timer.place = -1;
    const last = heap.pop();
    if (last === undefined || last === timer) return;
    rise(last, place);
    sink(last, last.place);
  }

  return {
    get size() {
      return heap.length;
    },
    get added() {
      return added;
    },
    nextAt: () => heap[0]?.at,
    add(at, callback) {
      const timer: WaitingTimer = { at, sequence: added, callback, place: -1 };
      added += 1;
      rise(timer, heap.length);
      return () => remove(timer);
    },
    takeDue(now, addedBefore = added) {
      const first = heap[0];
      if (first === undefined || first.at > now || first.sequence >= addedBefore) return undefined;
      remove(first);
      return first.callback;
    },
  };
}

function isBefore(one: WaitingTimer, other: WaitingTimer): boolean {
  return one.at < other.at || (one.at === other.at && one.sequence < other.sequence);
}
