import type { Reconciliation, RunContext } from "../tools/index.ts";

/** Calls that were aborted and never reconciled, for instance with their turn, are forgotten above this number. */
const MOST_CALLS = 1_000;

/**
 * The calls of a tool in this process that were not sent yet: they wait for a connection, a login or their turn. If such a call ends at
 * its time limit, it is known not to have run.
 */
export class UnsentCalls {
  readonly #keys = new Set<string>();

  /** Runs the code of a call, which has to call `sent` before it sends anything. */
  async during<T>(run: RunContext, work: (sent: () => void) => Promise<T>): Promise<T> {
    const { idempotencyKey, noted, signal } = run;
    // A call with a note was sent before.
    if (noted === null) this.#keys.add(idempotencyKey);
    const forget = (): void => void this.#keys.delete(idempotencyKey);
    for (const oldest of this.#keys) {
      if (this.#keys.size <= MOST_CALLS) break;
      this.#keys.delete(oldest);
    }
    try {
      return await work(forget);
    } finally {
      if (!signal.aborted) forget();
    }
  }

  /** The answer for a call that was not sent; `undefined` for others. */
  reconcile({ idempotencyKey }: RunContext): Reconciliation | undefined {
    return this.#keys.delete(idempotencyKey) ? { done: false } : undefined;
  }
}
