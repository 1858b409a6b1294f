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
