import { setMaxListeners } from "node:events";
import type { RateLimiterAbstract } from "rate-limiter-flexible";
import { anyRule, type Door, wholeNumberRule } from "../../base/index.ts";
import type { RedisClient } from "../../redis/index.ts";
import { ServerError } from "./failures.ts";

/** What one server and each of its callers may use. */
export interface ServeLimits {
  /** Longest body of a request, in bytes. Default 10,000,000. */
  readonly bodyBytes?: number | undefined;
  /** Requests of one caller in a minute. Default 1,200. */
  readonly requestsPerMinute?: number | undefined;
  /** Turns that one caller starts in a minute. Default 120. */
  readonly turnsPerMinute?: number | undefined;
  /** Turns of one caller that are open at a time, waiting ones included. Default 200. */
  readonly openTurns?: number | undefined;
  /** Streams that one caller has open on this server. Default 100. */
  readonly streamsPerCaller?: number | undefined;
  /** Streams that are open on this server. Default 5,000. */
  readonly streams?: number | undefined;
  /** A client of ioredis, in which rates are counted for all servers together. Default: each server counts for itself. */
  readonly redis?: RedisClient | undefined;
}

const number = wholeNumberRule(1);

export const limitsDoor: Door<ServeLimits> = {
  rules: {
    bodyBytes: number,
    requestsPerMinute: number,
    turnsPerMinute: number,
    openTurns: number,
    streamsPerCaller: number,
    streams: number,
    redis: anyRule,
  },
};

/** The limits of one server at work. */
export interface Limits {
  readonly bodyBytes: number;
  readonly requests: Rate;
  readonly turns: Rate;
  readonly openTurns: number;
  readonly streams: OpenStreams;
}

export function limitsAtWork(given: ServeLimits = {}): Limits {
  const { bodyBytes = 10_000_000, requestsPerMinute = 1_200, turnsPerMinute = 120, redis } = given;
  const { openTurns = 200, streamsPerCaller = 100, streams = 5_000 } = given;
  return {
    bodyBytes,
    requests: new Rate({ perMinute: requestsPerMinute, what: "requests", redis }),
    turns: new Rate({ perMinute: turnsPerMinute, what: "turns", redis }),
    openTurns,
    streams: new OpenStreams({ most: streams, mostPerCaller: streamsPerCaller }),
  };
}

interface RateOptions {
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

/** The open streams of one server, by caller. */
export class OpenStreams {
  readonly #most: number;
  readonly #mostPerCaller: number;
  readonly #counts = new Map<string, number>();
  readonly #closing = new AbortController();
  #total = 0;

  constructor({ most, mostPerCaller }: { readonly most: number; readonly mostPerCaller: number }) {
    this.#most = most;
    this.#mostPerCaller = mostPerCaller;
    setMaxListeners(0, this.#closing.signal);
  }

  get total(): number {
    return this.#total;
  }

  /** Aborts when the server closes. */
  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  /** Counts a stream until the returned function is called. Throws `ServerError` (429). */
  open(caller: string): () => void {
    const count = this.#counts.get(caller) ?? 0;
    if (count >= this.#mostPerCaller) throw tooMany(`you have ${count} open streams; close one of them`);
    if (this.#total >= this.#most) throw tooMany("this server has too many open streams");
    this.#counts.set(caller, count + 1);
    this.#total += 1;
    let isOpen = true;
    return () => {
      if (!isOpen) return;
      isOpen = false;
      this.#total -= 1;
      const left = (this.#counts.get(caller) ?? 1) - 1;
      if (left === 0) this.#counts.delete(caller);
      else this.#counts.set(caller, left);
    };
  }

  close(): void {
    this.#closing.abort();
  }
}

const RETRY_AFTER_SECONDS = "5";

function tooMany(message: string): ServerError {
  return new ServerError("rate_limited", message, { headers: { "retry-after": RETRY_AFTER_SECONDS } });
}
