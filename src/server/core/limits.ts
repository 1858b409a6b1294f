import { anyRule, type Door, wholeNumberRule } from "../../base/index.ts";
import type { RedisClient } from "../../redis/index.ts";
import { Rate } from "./rates.ts";
import { OpenStreams } from "./streams.ts";

/** What one server and each of its callers may use. */
export interface ServeLimits {
  /** Longest body of a request, in bytes. Default 10,000,000. */
  readonly bodyBytes?: number | undefined;
  /** Requests of one caller in a minute. Default 1,200. */
  readonly requestsPerMinute?: number | undefined;
  /** Turns that one caller starts in a minute. Default 120. */
  readonly turnsPerMinute?: number | undefined;
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
  readonly streams: OpenStreams;
}

export function limitsAtWork(given: ServeLimits = {}): Limits {
  const { bodyBytes = 10_000_000, requestsPerMinute = 1_200, turnsPerMinute = 120, redis } = given;
  const { streamsPerCaller = 100, streams = 5_000 } = given;
  return {
    bodyBytes,
    requests: new Rate({ perMinute: requestsPerMinute, what: "requests", redis }),
    turns: new Rate({ perMinute: turnsPerMinute, what: "turns", redis }),
    streams: new OpenStreams({ most: streams, mostPerCaller: streamsPerCaller }),
  };
}
