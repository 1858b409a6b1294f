import type { RateLimiterAbstract } from "rate-limiter-flexible";
import type { RedisClient } from "../../redis/index.ts";
import { ServerError } from "./failures.ts";

export interface RateOptions {
  /** How often a caller may, in each minute. */
  readonly perMinute: number;
  /** Names the limit in keys and messages: `requests`. */
  readonly what: string;
  /** Counts for all servers together. Absent: for this process. */
  readonly redis?: RedisClient | undefined;
}

const MINUTE_SECONDS = 60;

/**
 * Counts what callers do, in the memory of this process or in Redis. While Redis does not answer, each process counts
 * for itself.
 */
export class Rate {
  readonly #options: RateOptions;
  #limiter: Promise<RateLimiterAbstract> | undefined;

  constructor(options: RateOptions) {
    this.#options = options;
  }

  /** Counts one. Throws `ServerError` (429) with `Retry-After` when the caller has none left. */
  async take(caller: string): Promise<void> {
    const { what, perMinute } = this.#options;
    this.#limiter ??= limiterOf(this.#options);
    const limiter = await this.#limiter;
    const refusal: unknown = await limiter.consume(caller).then(
      () => undefined,
      (reason: unknown) => reason,
    );
    if (refusal === undefined) return;
    if (refusal instanceof Error) throw refusal;
    const { msBeforeNext = 1_000 } = refusal as { readonly msBeforeNext?: number };
    const seconds = Math.max(1, Math.ceil(msBeforeNext / 1_000));
    throw new ServerError("rate_limited", `more than ${perMinute} ${what} in a minute; try again in ${seconds} s`, {
      headers: { "retry-after": String(seconds) },
    });
  }
}

async function limiterOf({ perMinute, what, redis }: RateOptions): Promise<RateLimiterAbstract> {
  const { RateLimiterMemory, RateLimiterRedis } = await import("rate-limiter-flexible");
  const bounds = { keyPrefix: `troupe:rate:${what}`, points: perMinute, duration: MINUTE_SECONDS };
  const memory = new RateLimiterMemory(bounds);
  if (redis === undefined) return memory;
  return new RateLimiterRedis({ ...bounds, storeClient: redis, insuranceLimiter: memory });
}
