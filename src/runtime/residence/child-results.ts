import { createDeferred, type Deferred } from "../../base/index.ts";
import type { Entry } from "../../state/index.ts";
import type { SpawnedChild } from "../../tools/index.ts";

type ChildResult = Awaited<SpawnedChild["result"]>;

/** Code that waits for the children it spawned. */
export class ChildResults {
  readonly #waiters = new Map<string, Deferred<ChildResult>>();

  /** The end that the open turn's entries already hold, or the one that is to come. */
  of(childId: string, turnEntries: readonly Entry[]): SpawnedChild["result"] {
    const ended = turnEntries.find((entry) => entry.type === "child.ended" && entry.childId === childId);
    if (ended?.type === "child.ended") return Promise.resolve({ status: ended.outcome, text: ended.text });
    const waiter = this.#waiters.get(childId) ?? createDeferred<ChildResult>();
    this.#waiters.set(childId, waiter);
    return waiter.promise;
  }

  settle(childId: string, result: ChildResult): void {
    this.#waiters.get(childId)?.resolve(result);
    this.#waiters.delete(childId);
  }
}
