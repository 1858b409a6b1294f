import { backoffDelay, type Clock } from "../../base/index.ts";
import { TroupeError } from "../../errors/index.ts";

/** Between tries. */
const PAUSES = { baseMs: 200, capMs: 5_000 } as const;

export interface Tries {
  readonly clock: Clock;
  readonly random: () => number;
  /** Ends the tries: it rejects with its reason then. */
  readonly signal: AbortSignal;
}

/** Asks stores or queues again and again for as long as they cannot be reached; any other error is thrown at once. */
export async function untilReached<T>(ask: () => Promise<T>, { clock, random, signal }: Tries): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    signal.throwIfAborted();
    try {
      return await ask();
    } catch (error) {
      if (!(error instanceof TroupeError && error.retryable)) throw error;
    }
    await clock.sleep(backoffDelay(tries, random(), PAUSES), signal);
  }
}
