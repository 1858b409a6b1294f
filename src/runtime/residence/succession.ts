import { AlreadyOwnedError, LeaseLostError, NotFoundError } from "../../errors/index.ts";
import type { AgentKey } from "../../state/index.ts";

/**
 * Which activation of an agent follows which, in this process.
 * Owns: the line from an earlier activation to the last one, and which of them was given back for good.
 *
 * Invariant: nothing leads on from an activation that was given back: what its code has left behind brings nobody back.
 */
export class Succession<Live extends { readonly key: AgentKey }> {
  readonly #next = new WeakMap<Live, Live>();
  readonly #released = new WeakSet<Live>();

  follow(earlier: Live, later: Live): void {
    this.#next.set(earlier, later);
  }

  release(live: Live): void {
    this.#released.add(live);
  }

  /** The last activation that an earlier one leads to. */
  lastOf(live: Live): Live {
    let last = live;
    for (let next = this.#next.get(last); next; next = this.#next.get(last)) last = next;
    return last;
  }

  /** Throws `LeaseLostError` where nothing leads on. */
  assertGoesOn(live: Live): void {
    if (!this.#released.has(this.lastOf(live))) return;
    throw new LeaseLostError(`agent ${live.key.agentId} was released by this process`);
  }
}

/**
 * Rethrows: code of an earlier activation that finds its agent in another process, or gone from stores that have lost it, has
 * lost it too, whoever gets it back or makes it again.
 */
export function lostToOthers(error: unknown): never {
  if (!(error instanceof AlreadyOwnedError || error instanceof NotFoundError)) throw error;
  throw new LeaseLostError(error.message, { cause: error });
}
