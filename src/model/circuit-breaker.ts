import type { Clock } from "../base/index.ts";
import { ModelError } from "../errors/index.ts";
import type { LanguageModel } from "./language-model.ts";

/** When a provider counts as down, and for how long its models are then not called. */
export interface CircuitBreakerOptions {
  /** Failures within `windowMs`, without a success in between, after which the breaker opens. Default 5. */
  readonly failures?: number | undefined;
  /** Time in which the failures are counted, in milliseconds. Default 60,000. */
  readonly windowMs?: number | undefined;
  /** Time for which the models are not called, in milliseconds; then one call tests the provider. Default 30,000. */
  readonly openMs?: number | undefined;
}

export type BreakerLimits = { readonly [Name in keyof CircuitBreakerOptions]-?: number };

export const defaultBreaker: BreakerLimits = Object.freeze({ failures: 5, windowMs: 60_000, openMs: 30_000 });

/** A call through its breaker. */
export interface GuardedByBreaker {
  readonly model: LanguageModel;
  readonly limits: BreakerLimits;
  /** Aborting it ends the call without an outcome. */
  readonly signal: AbortSignal;
}

interface Circuit {
  /** Times of the failures that count, oldest first. */
  readonly failedAt: readonly number[];
  /** The end of the time without calls; `undefined` while the breaker is closed. */
  readonly openUntil?: number;
  /** The latest end of the call that tests the provider; `undefined` if none does. */
  readonly testUntil?: number | undefined;
}

/**
 * The circuit breakers of a process: one for the models of a provider at one server, and for equal limits. All times are those of
 * `Clock.elapsed()`. Owns: which failures count, and which call tests a provider. Nothing is stored.
 *
 * Invariants
 * 1. A breaker opens with the last of `failures` failures within `windowMs`, and closes with a success.
 * 2. After `openMs` one call at a time tests the provider. If it fails, the breaker is open for another `openMs`.
 * 3. A test without an outcome blocks other calls for at most `openMs`.
 * 4. `Retry-After` of a refusal blocks the refused model alone.
 * 5. A provider without failures uses no memory.
 */
export class CircuitBreakers {
  readonly #clock: Clock;
  readonly #circuits = new Map<string, Circuit>();
  readonly #resting = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** When the model may be called; in the past or now if it may be called at once. */
  freeAt(model: LanguageModel, limits: BreakerLimits): number {
    const rest = this.#resting.get(modelKey(model, limits)) ?? Number.NEGATIVE_INFINITY;
    return Math.max(rest, this.openUntil(model, limits) ?? Number.NEGATIVE_INFINITY);
  }

  /** Until when the breaker of the model permits no call; `undefined` if it permits one now. */
  openUntil(model: LanguageModel, limits: BreakerLimits): number | undefined {
    const { openUntil, testUntil } = this.#circuits.get(serverKey(model, limits)) ?? closed;
    const now = this.#clock.elapsed();
    if (openUntil === undefined) return undefined;
    if (now < openUntil) return openUntil;
    return testUntil !== undefined && now < testUntil ? testUntil : undefined;
  }

  /**
   * Makes a call if the breaker permits it, and counts its outcome.
   * @throws ModelError of kind `circuit_open` if it permits none: nothing is sent.
   */
  async run<T>({ model, limits, signal }: GuardedByBreaker, call: () => Promise<T>): Promise<T> {
    const openUntil = this.openUntil(model, limits);
    if (openUntil !== undefined) throw this.#refusal(model, openUntil);
    const key = serverKey(model, limits);
    const before = this.#circuits.get(key);
    const isTest = before?.openUntil !== undefined;
    if (isTest) this.#circuits.set(key, { ...before, testUntil: this.#clock.elapsed() + limits.openMs });
    try {
      const answer = await call();
      this.#answered(model, limits);
      return answer;
    } catch (error) {
      if (signal.aborted || !(error instanceof ModelError)) {
        if (isTest) this.#endTest(key);
      } else if (isProviderError(error)) this.#failed(model, limits, error);
      // The provider has answered, although not as the caller wanted.
      else this.#answered(model, limits);
      throw error;
    }
  }

  #answered(model: LanguageModel, limits: BreakerLimits): void {
    this.#circuits.delete(serverKey(model, limits));
    this.#resting.delete(modelKey(model, limits));
  }

  #failed(model: LanguageModel, limits: BreakerLimits, { retryAfterMs }: ModelError): void {
    const now = this.#clock.elapsed();
    if (retryAfterMs !== undefined) this.#resting.set(modelKey(model, limits), now + retryAfterMs);
    const key = serverKey(model, limits);
    const { failedAt, openUntil } = this.#circuits.get(key) ?? closed;
    // A call that began before the breaker opened does not prolong it.
    if (openUntil !== undefined && now < openUntil) return;
    const counted = [...failedAt.filter((at) => now - at <= limits.windowMs), now].slice(-limits.failures);
    const opens = openUntil !== undefined || counted.length >= limits.failures;
    this.#circuits.set(key, { failedAt: counted, ...(opens ? { openUntil: now + limits.openMs } : {}) });
  }

  #endTest(key: string): void {
    const circuit = this.#circuits.get(key);
    if (circuit) this.#circuits.set(key, { ...circuit, testUntil: undefined });
  }

  #refusal(model: LanguageModel, openUntil: number): ModelError {
    const retryAfterMs = Math.max(0, openUntil - this.#clock.elapsed());
    const until = new Date(this.#clock.now() + retryAfterMs).toISOString();
    return new ModelError(
      `The circuit breaker of provider "${model.provider}" is open until ${until}; the call of "${model.name}" was not sent.`,
      { retryable: true, mayHaveBeenSent: false, retryAfterMs, details: { kind: "circuit_open" } },
    );
  }
}

const closed: Circuit = Object.freeze({ failedAt: [] });

function serverKey({ provider, server }: LanguageModel, { failures, windowMs, openMs }: BreakerLimits): string {
  return JSON.stringify([provider, server ?? null, failures, windowMs, openMs]);
}

function modelKey(model: LanguageModel, limits: BreakerLimits): string {
  return `${model.name}\n${serverKey(model, limits)}`;
}

const providerKinds: ReadonlySet<unknown> = new Set(["configuration", "connection", "insufficient_quota"]);

/**
 * Whether the error is the provider's, so that its other models are likely to fail too: an error that may be repeated, a
 * connection that cannot be made, a refused key, or a spent quota.
 */
export function isProviderError({ retryable, status, details }: ModelError): boolean {
  const kind = details["kind"];
  if (kind === "tool_use_failed") return false;
  return retryable || providerKinds.has(kind) || status === 401 || status === 402 || status === 403;
}

/** By clock, because the times of two clocks cannot be compared: all runtimes on the system clock share their breakers. */
const breakers = new WeakMap<Clock, CircuitBreakers>();

export function breakersOf(clock: Clock): CircuitBreakers {
  const known = breakers.get(clock);
  if (known) return known;
  const made = new CircuitBreakers(clock);
  breakers.set(clock, made);
  return made;
}
