import { Waiters } from "../../base/index.ts";
import { StoreRolledBackError } from "../../errors/index.ts";
import { type ForeignWrites, isTreeChanged, type Stores } from "../../stores/index.ts";
import type { SteerAnswer } from "../api/turn-types.ts";

interface SteerWatchOptions {
  readonly stores: Pick<Stores, "readSteer">;
  readonly tenant: string;
  /** Aborted when the runtime has been shut down. */
  readonly closed: AbortSignal;
}

/**
 * Waiters for inputs to be taken in, in this or another process.
 * Owns: the waiters. Does not own: the state of an input, which is read from the stores after each commit that may have changed it.
 */
export class SteerWatch {
  readonly #options: SteerWatchOptions;
  readonly #moved = new Waiters<string>();

  constructor(options: SteerWatchOptions) {
    this.#options = options;
  }

  /** Resolves when the input is part of a turn. Rejects with `StoreRolledBackError` if the stores have lost it. */
  async answer(agentId: string, keyOrId: string): Promise<SteerAnswer> {
    const { stores, tenant, closed } = this.#options;
    for (;;) {
      closed.throwIfAborted();
      // Before the read, so that a commit during the read is noticed.
      const moved = this.#moved.join(agentId);
      moved.promise.catch(() => undefined);
      try {
        const found = await stores.readSteer({ tenant, agentId }, keyOrId);
        if (!found) throw lostInput(agentId);
        const { steer, turnId, step } = found;
        if (steer === "taken" && step !== null) return { status: "delivered", turnId, step };
        if (steer === "deferred") return { status: "queued", turnId };
        await moved.promise;
      } finally {
        this.#moved.resolve(agentId, undefined, [moved]);
      }
    }
  }

  /** Must be called after each commit of an agent of this process. */
  committed(agentId: string): void {
    if (this.#moved.has(agentId)) this.#moved.resolve(agentId);
  }

  /** Another process has written. */
  lookForAll(writes: ForeignWrites): void {
    const { tenant } = this.#options;
    for (const agentId of this.#moved.keys()) {
      if (isTreeChanged(writes, { tenant, agentId })) this.#moved.resolve(agentId);
    }
  }

  /** Rejects all waiters, because they cannot be resolved any more. */
  reject(error: Error): void {
    for (const agentId of this.#moved.keys()) this.#moved.reject(agentId, error);
  }
}

function lostInput(agentId: string): StoreRolledBackError {
  return new StoreRolledBackError(`the stores have lost an accepted input of agent "${agentId}"; send it again`);
}
