import { InvalidInputError, TroupeError } from "../errors/index.ts";
import type { Clock } from "./clock.ts";

export interface BackoffOptions {
  /** Maximum wait after the first failure, in milliseconds. Default 500. */
  readonly baseMs?: number;
  /** Maximum wait after any failure, in milliseconds. Default 30,000. */
  readonly capMs?: number;
}

/**
 * The wait after the `attempt`-th failure (from 1), in whole milliseconds: exponential with full jitter, that is a value from 0
 * to `min(capMs, baseMs * 2 ** (attempt - 1))`, so that clients that failed together do not retry together. Pure: the caller
 * passes `random` in [0, 1).
 * @throws InvalidInputError for numbers outside these ranges.
 */
export function backoffDelay(attempt: number, random: number, options: BackoffOptions = {}): number {
  const { baseMs = 500, capMs = 30_000 } = options;
  check("attempt", attempt, Number.isSafeInteger(attempt) && attempt >= 1, "an integer from 1");
  check("random", random, random >= 0 && random < 1, "at least 0 and below 1");
  check("baseMs", baseMs, baseMs >= 0 && Number.isFinite(baseMs), "a finite number from 0");
  check("capMs", capMs, capMs >= 0 && Number.isFinite(capMs), "a finite number from 0");
  // The exponent is bounded so that the result cannot be 0 * Infinity.
  return Math.floor(random * Math.min(capMs, baseMs * 2 ** Math.min(attempt - 1, 64)));
}

function check(name: string, value: number, isValid: boolean, expected: string): void {
  if (!isValid) throw new InvalidInputError(`${name} is ${value}; it must be ${expected}`);
}

/** Default waits of `untilReached`. */
const REACHING = { baseMs: 200, capMs: 5_000 } as const;

function isRetryable(error: unknown): boolean {
  return error instanceof TroupeError && error.retryable;
}

export interface Tries {
  readonly clock: Clock;
  readonly random: () => number;
  /** Aborting it ends the attempts. */
  readonly signal: AbortSignal;
  /** Which errors are retried. Default: errors whose `retryable` is true. */
  readonly isTransient?: (error: unknown) => boolean;
  /** Waits between the attempts. Default: at most 200 ms after the first, at most 5,000. */
  readonly waits?: BackoffOptions;
}

/**
 * Retries calls to stores or queues while they cannot be reached; any other error is thrown immediately. Rejects with the
 * signal's reason when the signal is aborted.
 */
export async function untilReached<T>(
  ask: () => Promise<T>,
  { clock, random, signal, isTransient = isRetryable, waits = REACHING }: Tries,
): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    signal.throwIfAborted();
    try {
      return await ask();
    } catch (error) {
      if (!isTransient(error)) throw error;
    }
    await clock.sleep(backoffDelay(tries, random(), waits), signal);
  }
}
