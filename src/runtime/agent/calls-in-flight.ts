import { abortable, type Clock, readableThrown, workingOn } from "../../base/index.ts";
import { LeaseLostError, TurnInterruptedError } from "../../errors/index.ts";

interface Call {
  readonly promise: Promise<unknown>;
  readonly controller: AbortController;
}

/** How one activation waits for a call. */
export interface CallWait {
  readonly signal: AbortSignal;
  /** Whether the waiting activation was discarded. */
  readonly isDiscarded: () => boolean;
  readonly isRepeatable: boolean;
}

/**
 * Calls of models, tools and other user code that this process has in flight.
 * Owns: calls without an outcome, or whose outcome was not read. Does not own: whether a call may start.
 *
 * Invariants
 * 1. A key starts at most once until its outcome is read: a second request joins the call.
 * 2. Discarding an activation does not stop its calls; stopping the work aborts them.
 * 3. Any value that user code throws leaves this class as a readable error.
 * 4. A call that failed because another process took over its agent has no outcome: the activation that joined it makes the call
 *    again, if it may be repeated.
 */
export class CallsInFlight {
  readonly #calls = new Map<string, Call>();
  readonly #clock: Pick<Clock, "work">;

  constructor(clock: Pick<Clock, "work">) {
    this.#clock = clock;
  }

  async run<T>(
    key: string,
    { signal, isDiscarded, isRepeatable }: CallWait,
    start: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const joined = this.#calls.get(key);
    const begun = joined ?? this.#begin(key, start);
    try {
      const outcome = await abortable(begun.promise, signal);
      this.#calls.delete(key);
      return outcome as T;
    } catch (error) {
      if (signal.aborted && isDiscarded()) throw error;
      if (this.#calls.get(key) === begun) this.#calls.delete(key);
      if (signal.aborted) begun.controller.abort(signal.reason);
      else if (joined && isRepeatable && error instanceof LeaseLostError && !isDiscarded()) {
        return await this.run(key, { signal, isDiscarded, isRepeatable }, start);
      }
      throw error;
    }
  }

  has(key: string): boolean {
    return this.#calls.has(key);
  }

  /** Aborts one call; the waiting effect receives the error that the call itself throws. */
  cut(key: string): void {
    this.#calls.get(key)?.controller.abort(new TurnInterruptedError("the call was dropped by a pause"));
  }

  /** Aborts all calls of one agent, or of all agents; their outcomes are not needed any more. */
  abandon(agentId?: string): void {
    if (this.#calls.size === 0) return;
    for (const [key, { controller }] of this.#calls) {
      if (agentId !== undefined && !key.startsWith(`${agentId}#`)) continue;
      this.#calls.delete(key);
      controller.abort(new TurnInterruptedError("its agent was released by this process"));
    }
  }

  #begin(key: string, start: (signal: AbortSignal) => Promise<unknown>): Call {
    const controller = new AbortController();
    // The first waiter is attached immediately, so that a rejection does not count as unhandled.
    const promise = workingOn(this.#clock, () => start(controller.signal)).catch((thrown: unknown) => {
      const error = readableThrown(thrown);
      const isLost = error instanceof LeaseLostError && this.#calls.get(key)?.controller === controller;
      if (isLost) this.#calls.delete(key);
      throw error;
    });
    const begun = { promise, controller };
    this.#calls.set(key, begun);
    return begun;
  }
}
