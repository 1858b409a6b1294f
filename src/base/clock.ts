import { InvalidInputError } from "../errors/index.ts";
import { abortable } from "./waiting.ts";

/**
 * Time as a port: code that reads the time or waits uses a clock, so that tests can pass their own. A clock has two times: wall
 * time (`now`) for deadlines and timestamps, and monotonic time (`elapsed`) for durations such as leases, working time and
 * time-outs.
 */
export interface Clock {
  /** Milliseconds since the epoch. May jump forwards and backwards. */
  now(): number;
  /**
   * Whole milliseconds since a fixed moment. Never jumps or goes back, even if the system clock is set, and is the same for all
   * processes of one machine until it is rebooted.
   */
  elapsed(): number;
  /**
   * Calls back once, when `now()` has reached `at` (milliseconds since the epoch), never synchronously. A time in the past is due
   * immediately. Returns a function that cancels the timer. A timer does not keep the process alive.
   * @throws InvalidInputError when `at` is not a finite number.
   */
  setTimer(at: number, callback: () => void): () => void;
  /**
   * As `setTimer`, but after `ms` milliseconds of `elapsed()`: setting the system clock does not affect it.
   * @throws InvalidInputError when `ms` is not a finite number.
   */
  setDelay(ms: number, callback: () => void): () => void;
  /**
   * Resolves after `ms` milliseconds of `elapsed()`, never synchronously. Rejects with the signal's reason when the signal
   * aborts, and then removes its timer. Like a timer, it does not keep the process alive.
   * @throws InvalidInputError (as a rejection) when `ms` is not a finite number.
   */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** Through it the runtime runs its work, for a clock that passes time by itself. Absent in every other clock. */
  readonly work?: WorkWatch | undefined;
}

/**
 * How a clock that passes time by itself notices code that takes real time: models, tools, hooks and other functions of users, calls of
 * the stores. Time stands still while such code works, and passes while it waits in `sleep()` of the clock or for the runtime.
 */
export interface WorkWatch {
  /** Calls `work` at once and returns its result. The work lasts until a returned promise has settled. */
  during<Result>(work: () => Result): Result;
  /** Calls `wait` at once and returns its result. The work of the caller waits until a returned promise has settled. */
  waiting<Result>(wait: () => Result): Result;
}

/** Runs code that takes real time. */
export function workingOn<Result>(clock: Pick<Clock, "work"> | undefined, work: () => Result): Result {
  return clock?.work ? clock.work.during(work) : work();
}

/** Runs a wait of such code for the runtime. */
export function waitingOn<Result>(clock: Pick<Clock, "work"> | undefined, wait: () => Result): Result {
  return clock?.work ? clock.work.waiting(wait) : wait();
}

/** `sleep()` based on `setDelay()`. */
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
 * Maximum time between two readings of the system time while timers wait, in milliseconds: a timer is at most this late after the
 * clock was set or the machine slept. It also keeps every wait far below setTimeout's limit of 2^31-1 ms.
 */
export const clockTickMs = 100;

/**
 * The system clock. Owns one Node timer, shared by all timers set on it.
 *
 * 1. A callback runs only when the clock has reached its time, earlier times first.
 * 2. A callback that throws does not stop the others: its error becomes an uncaught exception.
 * 3. Without timers no Node timer runs.
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
    // Timers that a callback sets wait for the next tick, so that a callback that sets itself again does not block the event
    // loop.
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

const holds = new Set<symbol>();
let handle: NodeJS.Timeout | undefined;

/**
 * Keeps this process alive until the returned function is called. A clock's timers do not keep it alive, so a process that only
 * waits (for the next attempt of a call) would exit in the middle of its work.
 */
export function holdProcess(): () => void {
  // One permanent timer, because every turn holds the process and would otherwise create and clear its own.
  handle ??= setInterval(() => undefined, LONGEST_INTERVAL_MS);
  const hold = Symbol("hold");
  holds.add(hold);
  if (holds.size === 1) handle.ref();
  return () => letGo(hold);
}

function letGo(hold: symbol): void {
  if (holds.delete(hold) && holds.size === 0) handle?.unref();
}

/**
 * The returned function ends all holds that began after this call and still last: those of simulated processes that are dead. The caller
 * keeps the process alive in between.
 */
export function holdsFromNow(): () => void {
  const before = new Set(holds);
  return () => {
    for (const hold of holds) if (!before.has(hold)) letGo(hold);
  };
}

/** A timer that waits for its time. Only the queue uses it. */
interface WaitingTimer {
  readonly at: number;
  readonly sequence: number;
  readonly callback: () => void;
  /** Its index in the heap, -1 after removal. */
  place: number;
}

/**
 * A heap of timers ordered by due time; timers with the same time keep the order in which they were set. It does not use a clock.
 * Adding and removing take logarithmic time, and a removed timer uses no memory.
 */
export interface TimerQueue {
  readonly size: number;
  /** When the first timer is due; `undefined` if the heap is empty. */
  nextAt(): number | undefined;
  /** Returns a function that removes the timer; it does nothing after the timer ran or was removed. */
  add(at: number, callback: () => void): () => void;
  /** How many timers were added in total, for `takeDue`. */
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
