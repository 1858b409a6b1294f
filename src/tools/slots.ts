import { InvalidInputError } from "../errors/index.ts";

/** Releases the slot. Calling it again changes nothing. */
export type ReleaseSlot = () => void;

export interface Slots {
  /** Waits for a free slot, first come, first served. Rejects with the signal's reason if it is aborted first, and then takes no slot. */
  acquire(signal: AbortSignal): Promise<ReleaseSlot>;
  /** Number of occupied slots. */
  readonly taken: number;
  /** Callers that wait now. */
  readonly waiting: number;
}

/**
 * Limits how many calls of one tool run at a time in this process.
 * Owns: the queue of waiters. Does not own: timeouts and the calls themselves.
 * 1. `taken` never exceeds `limit`. 2. Waiters are served in the order in which they came. 3. An aborted waiter takes no slot.
 *
 * @param limit whole number, at least 1, or `Infinity`. Throws `InvalidInputError` otherwise.
 */
export function createSlots(limit: number): Slots {
  if (!(Number.isInteger(limit) && limit >= 1) && limit !== Number.POSITIVE_INFINITY) {
    throw new InvalidInputError(`A limit of slots must be a whole number of at least 1, not ${limit}.`);
  }
  const waiters = new Set<() => void>();
  let taken = 0;

  function take(): ReleaseSlot {
    taken += 1;
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      taken -= 1;
      const next = waiters.values().next();
      if (!next.done) next.value();
    };
  }

  return {
    async acquire(signal) {
      signal.throwIfAborted();
      if (taken < limit) return take();
      const { promise, resolve, reject } = Promise.withResolvers<ReleaseSlot>();
      function leave() {
        waiters.delete(serve);
        signal.removeEventListener("abort", abort);
      }
      function serve() {
        leave();
        resolve(take());
      }
      function abort() {
        leave();
        reject(signal.reason);
      }
      waiters.add(serve);
      signal.addEventListener("abort", abort);
      return promise;
    },
    get taken() {
      return taken;
    },
    get waiting() {
      return waiters.size;
    },
  };
}

/** One set of slots per tool name, shared by all agents of the process. */
export function createSlotsByTool(): (toolName: string, limit: number) => Slots {
  const byTool = new Map<string, Slots>();
  return (toolName, limit) => {
    const slots = byTool.get(toolName) ?? createSlots(limit);
    byTool.set(toolName, slots);
    return slots;
  };
}
