import { AsyncLocalStorage } from "node:async_hooks";
import type { WorkWatch } from "../base/index.ts";

/** One piece of work: a call of a model, a tool, a hook or the stores. */
interface Work {
  /** What it waits for: `sleep()` of the clock, the runtime, or work that it has started. */
  waits: number;
  isOver: boolean;
}

/**
 * What a runtime does besides waiting for its clock.
 * Owns: which work is under way, and which of it waits. Does not own: the clock.
 *
 * Invariants
 * 1. Work is busy from its begin to its end, except while it waits for something.
 * 2. Values and promises are returned unchanged, so that code runs in the same order without a watch.
 */
export class WorkUnderWay implements WorkWatch {
  readonly #current = new AsyncLocalStorage<Work>();
  readonly #busy = new Set<Work>();
  #underWay = 0;
  #changed = Promise.withResolvers<void>();
  /** Increases whenever work begins, ends, waits or continues. */
  changes = 0;

  /** Whether any work takes real time. */
  get isBusy(): boolean {
    return this.#busy.size > 0;
  }

  /** Whether there is work, also if all of it waits. */
  get isUnderWay(): boolean {
    return this.#underWay > 0;
  }

  /** Resolves at the next change. */
  async changed(): Promise<void> {
    await this.#changed.promise;
  }

  during<Result>(work: () => Result): Result {
    const own: Work = { waits: 0, isOver: false };
    this.#underWay += 1;
    this.#note(own);
    return this.waiting(() =>
      until(
        () => this.#current.run(own, work),
        () => {
          own.isOver = true;
          this.#underWay -= 1;
          this.#note(own);
        },
      ),
    );
  }

  waiting<Result>(wait: () => Result): Result {
    const waiter = this.#current.getStore();
    if (!waiter) return wait();
    waiter.waits += 1;
    this.#note(waiter);
    return until(wait, () => {
      waiter.waits -= 1;
      this.#note(waiter);
    });
  }

  #note(work: Work): void {
    if (work.waits === 0 && !work.isOver) this.#busy.add(work);
    else this.#busy.delete(work);
    this.changes += 1;
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }
}

/** Calls `end` once the result of `start` has settled, or `start` has thrown. */
function until<Result>(start: () => Result, end: () => void): Result {
  let result: Result;
  try {
    result = start();
  } catch (error) {
    end();
    throw error;
  }
  if (result instanceof Promise) result.then(end, end);
  else end();
  return result;
}
