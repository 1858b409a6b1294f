import { abortable, readableThrown } from "../../base/index.ts";
import { LeaseLostError, TurnInterruptedError } from "../../errors/index.ts";

interface Outside {
  readonly promise: Promise<unknown>;
  readonly controller: AbortController;
}

/** Who waits for a call. */
export interface WorldRun {
  readonly signal: AbortSignal;
  /** Whether the activation that waits was discarded. */
  readonly isDiscarded: () => boolean;
  readonly isRepeatable: boolean;
}

/**
 * Calls that are out in the world: of models and of tools.
 * Owns: what this process has begun and whose outcome nobody has taken yet. Does not own: whether it may be begun.
 *
 * Invariants
 * 1. A key is begun at most once while its outcome was not taken: whoever asks again joins.
 * 2. An activation that is discarded lets its calls go on; stopping the work aborts them.
 * 3. Whatever foreign code throws comes out of here as something that can be read.
 * 4. A call that ended because its agent was another process' meanwhile has no outcome: who joined it makes it again, where
 *    it may be repeated.
 */
export class World {
  readonly #outside = new Map<string, Outside>();

  async run<T>(
    key: string,
    { signal, isDiscarded, isRepeatable }: WorldRun,
    start: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const joined = this.#outside.get(key);
    const begun = joined ?? this.#begin(key, start);
    try {
      const outcome = await abortable(begun.promise, signal);
      this.#outside.delete(key);
      return outcome as T;
    } catch (error) {
      if (signal.aborted && isDiscarded()) throw error;
      if (this.#outside.get(key) === begun) this.#outside.delete(key);
      if (signal.aborted) begun.controller.abort(signal.reason);
      else if (joined && isRepeatable && error instanceof LeaseLostError && !isDiscarded()) {
        return await this.run(key, { signal, isDiscarded, isRepeatable }, start);
      }
      throw error;
    }
  }

  has(key: string): boolean {
    return this.#outside.has(key);
  }

  /** Aborts one call; whoever waits for its outcome gets the error that the call itself gives. */
  cut(key: string): void {
    this.#outside.get(key)?.controller.abort(new TurnInterruptedError("the call was dropped by a pause"));
  }

  /** Aborts everything of one agent, or of all: nobody is left to take the outcomes. */
  abandon(agentId?: string): void {
    const reason = new TurnInterruptedError("its agent was released by this process");
    for (const [key, { controller }] of this.#outside) {
      if (agentId !== undefined && !key.startsWith(`${agentId}#`)) continue;
      this.#outside.delete(key);
      controller.abort(reason);
    }
  }

  #begin(key: string, start: (signal: AbortSignal) => Promise<unknown>): Outside {
    const controller = new AbortController();
    const promise = this.#outcomeOf(key, start, controller);
    // Whoever takes the outcome sees the error; until then it must not count as unhandled.
    promise.catch(() => undefined);
    const begun = { promise, controller };
    this.#outside.set(key, begun);
    return begun;
  }

  async #outcomeOf(
    key: string,
    start: (signal: AbortSignal) => Promise<unknown>,
    controller: AbortController,
  ): Promise<unknown> {
    try {
      return await start(controller.signal);
    } catch (thrown) {
      const error = readableThrown(thrown);
      const isLost = error instanceof LeaseLostError && this.#outside.get(key)?.controller === controller;
      if (isLost) this.#outside.delete(key);
      throw error;
    }
  }
}
