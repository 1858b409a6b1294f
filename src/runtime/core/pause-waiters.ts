import { createDeferred, type Deferred } from "../../base/index.ts";

/** Those who wait for agents to come to rest. */
export class PauseWaiters {
  readonly #waiters = new Map<string, Deferred<void>>();

  until(agentId: string): Promise<void> {
    const waiter = this.#waiters.get(agentId) ?? createDeferred();
    this.#waiters.set(agentId, waiter);
    return waiter.promise;
  }

  resolve(agentId: string): void {
    this.#waiters.get(agentId)?.resolve();
    this.#waiters.delete(agentId);
  }
}
