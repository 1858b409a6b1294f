import { setMaxListeners } from "node:events";
import type { RateLimiterAbstract } from "rate-limiter-flexible";
import { type OptionsSchema, hasMethods, ruleOf, wholeNumberRule } from "../../base/index.ts";
import type { RedisClient } from "../../redis/index.ts";
import { ServerError } from "./failures.ts";

/** Limits of one server and of each of its callers. */
export interface ServeLimits {
  /** Longest body of a request, in bytes. Default 10,000,000. */
  readonly bodyBytes?: number | undefined;
  /** Values in the body of a request: members, items and containers in total. Default 50,000. */
  readonly bodyValues?: number | undefined;
  /** Requests of one caller in a minute. Default 1,200. */
  readonly requestsPerMinute?: number | undefined;
  /** Turns that one caller starts in a minute. Default 120. */
  readonly turnsPerMinute?: number | undefined;
  /** Open or queued turns of one caller at a time, including waiting ones. Default 200. */
  readonly openTurns?: number | undefined;
  /** Schedules of one caller, ended ones included. Default 200. */
  readonly schedules?: number | undefined;
  /** Minimum distance between two times of a caller's schedule, in milliseconds. Default 60,000. */
  readonly scheduleDistanceMs?: number | undefined;
  /** Open streams of one caller on this server. Default 100. */
  readonly streamsPerCaller?: number | undefined;
  /** Open streams on this server. Default 5,000. */
  readonly streams?: number | undefined;
  /** Blocking requests of one caller on this server; above the limit they are answered without waiting. Default 200. */
  readonly waitsPerCaller?: number | undefined;
  /** Blocking requests of all callers. Default 5,000. */
  readonly waits?: number | undefined;
  /**
   * Requests without a caller from one address in a minute: public routes, unknown routes, missing token. Default 600.
   * Requests from the same machine are unlimited.
   */
  readonly anonymousPerMinute?: number | undefined;
  /** Requests with a wrong token from one address in a minute. Default 60. */
  readonly wrongTokensPerMinute?: number | undefined;
  /** Redis that counts the callers' rates for all servers together. Default: each server counts alone. */
  readonly redis?: RateRedis | undefined;
}

/** A Redis that counts rates: the result of `redisSharing()`, or a client of ioredis. */
export interface RateRedis {
  /** A client of ioredis, or of its cluster. */
  readonly client: RedisClient;
  /** Prefix of the keys. Default `troupe:`. */
  readonly prefix?: string | undefined;
}

/** Maximum number of decisions and tool results in one request: each is read and stored on its own. */
export const MOST_ANSWERS = 1_000;

const number = wholeNumberRule(1);

export const limitsOptionsSchema: OptionsSchema<ServeLimits> = {
  rules: {
    bodyBytes: number,
    bodyValues: number,
    requestsPerMinute: number,
    turnsPerMinute: number,
    openTurns: number,
    schedules: number,
    scheduleDistanceMs: number,
    streamsPerCaller: number,
    streams: number,
    waitsPerCaller: number,
    waits: number,
    anonymousPerMinute: number,
    wrongTokensPerMinute: number,
    redis: ruleOf(
      "the result of redisSharing(), or { client } with a client of ioredis",
      (value) =>
        typeof value === "object" && value !== null && "client" in value && hasMethods(value.client, ["multi"]),
    ),
  },
};

/** The running limits of one server. */
export interface Limits {
  readonly bodyBytes: number;
  readonly bodyValues: number;
  readonly requests: Rate;
  readonly turns: Rate;
  readonly openTurns: number;
  readonly schedules: number;
  readonly scheduleDistanceMs: number;
  readonly streams: OpenCalls;
  readonly waits: OpenCalls;
  readonly anonymousPerMinute: number;
  readonly wrongTokensPerMinute: number;
}

export function limitsAtWork(given: ServeLimits = {}): Limits {
  const { bodyBytes = 10_000_000, bodyValues = 50_000 } = given;
  const { requestsPerMinute = 1_200, turnsPerMinute = 120, redis } = given;
  const { openTurns = 200, streamsPerCaller = 100, streams = 5_000, waitsPerCaller = 200, waits = 5_000 } = given;
  const { schedules = 200, scheduleDistanceMs = 60_000 } = given;
  const { anonymousPerMinute = 600, wrongTokensPerMinute = 60 } = given;
  return {
    bodyBytes,
    bodyValues,
    requests: new Rate({ perMinute: requestsPerMinute, what: "requests", redis }),
    turns: new Rate({ perMinute: turnsPerMinute, what: "turns", redis }),
    openTurns,
    schedules,
    scheduleDistanceMs,
    streams: new OpenCalls({ most: streams, mostPerCaller: streamsPerCaller, what: "streams" }),
    waits: new OpenCalls({ most: waits, mostPerCaller: waitsPerCaller, what: "waiting requests" }),
    anonymousPerMinute,
    wrongTokensPerMinute,
  };
}

interface RateOptions {
  /** Allowed number in each minute. */
  readonly perMinute: number;
  /** Name of the limit in keys and messages: `requests`. */
  readonly what: string;
  /** Counts for all servers together; without it, each process counts alone. */
  readonly redis?: RateRedis | undefined;
}

const MINUTE_SECONDS = 60;

/**
 * Counts actions by caller, in this process's memory or in Redis. While Redis does not respond, each process counts
 * alone.
 */
export class Rate {
  readonly #options: RateOptions;
  #limiter: Promise<RateLimiterAbstract> | undefined;

  constructor(options: RateOptions) {
    this.#options = options;
  }

  /** Counts one action. Rejects with `ServerError` (429) with `Retry-After` above the limit. */
  async take(caller: string): Promise<void> {
    const limiter = await this.#open();
    const refusal: unknown = await limiter.consume(caller).then(
      () => undefined,
      (reason: unknown) => reason,
    );
    if (refusal === undefined) return;
    if (refusal instanceof Error) throw refusal;
    this.#refuse(refusal as { readonly msBeforeNext?: number });
  }

  /** Counts one action, even above the limit. */
  async count(caller: string): Promise<void> {
    await (await this.#open()).penalty(caller);
  }

  /** Rejects with `ServerError` (429) if the limit is reached. Counts nothing. */
  async assertLeft(caller: string): Promise<void> {
    const used = await (await this.#open()).get(caller);
    if (used !== null && used.consumedPoints >= this.#options.perMinute) this.#refuse(used);
  }

  async #open(): Promise<RateLimiterAbstract> {
    this.#limiter ??= limiterOf(this.#options);
    return await this.#limiter;
  }

  #refuse({ msBeforeNext = 1_000 }: { readonly msBeforeNext?: number }): never {
    const seconds = Math.max(1, Math.ceil(msBeforeNext / 1_000));
    const { perMinute, what } = this.#options;
    throw new ServerError("rate_limited", `more than ${perMinute} ${what} in a minute; try again in ${seconds} s`, {
      headers: { "retry-after": String(seconds) },
    });
  }
}

async function limiterOf({ perMinute, what, redis }: RateOptions): Promise<RateLimiterAbstract> {
  const { RateLimiterMemory, RateLimiterRedis } = await import("rate-limiter-flexible");
  const { client, prefix = "troupe:" } = redis ?? {};
  const bounds = { keyPrefix: `${prefix}rate:${what}`, points: perMinute, duration: MINUTE_SECONDS };
  const memory = new RateLimiterMemory(bounds);
  if (client === undefined) return memory;
  return new RateLimiterRedis({ ...bounds, storeClient: client, insuranceLimiter: memory });
}

interface OpenCallsOptions {
  readonly most: number;
  readonly mostPerCaller: number;
  /** Name of the calls in messages: `streams`. */
  readonly what: string;
}

/** Counts the open calls of one kind on one server, by caller. */
export class OpenCalls {
  readonly #options: OpenCallsOptions;
  readonly #counts = new Map<string, number>();
  readonly #closing = new AbortController();
  #total = 0;

  constructor(options: OpenCallsOptions) {
    this.#options = options;
    setMaxListeners(0, this.#closing.signal);
  }

  get total(): number {
    return this.#total;
  }

  /** Aborts when the server closes. */
  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  /** Counts a call until the returned function is called. Throws `ServerError` (429). */
  open(caller: string): () => void {
    const release = this.tryOpen(caller);
    if (release !== undefined) return release;
    const { mostPerCaller, what } = this.#options;
    const isCallers = (this.#counts.get(caller) ?? 0) >= mostPerCaller;
    throw new ServerError(
      "rate_limited",
      isCallers ? `you have ${mostPerCaller} open ${what}; close one of them` : `this server has too many open ${what}`,
      { headers: { "retry-after": RETRY_AFTER_SECONDS } },
    );
  }

  /** Like `open`, but returns `undefined` above the limit. */
  tryOpen(caller: string): (() => void) | undefined {
    const { most, mostPerCaller } = this.#options;
    const count = this.#counts.get(caller) ?? 0;
    if (count >= mostPerCaller || this.#total >= most) return undefined;
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
