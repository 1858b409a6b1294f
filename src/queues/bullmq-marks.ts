import { z } from "zod";
import { createId, parseJson } from "../base/index.ts";
import type { BullmqConnection } from "./bullmq-connection.ts";
import type { BullmqPlaces } from "./bullmq-places.ts";
import type { CancelOutcome, DeadCause } from "./ports.ts";

/**
 * Marks a running job as cancelled; only reports a waiting one.
 * KEYS: the job, its lock, the list of running jobs. ARGV: the job's id, the reason.
 * Returns 0 when there is no such job or it has ended, 1 when it waits, 2 when it runs and is marked.
 */
const CANCEL = `
if redis.call("EXISTS", KEYS[1]) == 0 or redis.call("HEXISTS", KEYS[1], "finishedOn") == 1 then return 0 end
if redis.call("EXISTS", KEYS[2]) == 0 and not redis.call("LPOS", KEYS[3], ARGV[1]) then return 1 end
redis.call("HSET", KEYS[1], "troupe-cancel", ARGV[2])
return 2`;

/** Sets a field of a job, if the job still exists. KEYS: the job. ARGV: the field, its value. */
const NOTE = `
if redis.call("EXISTS", KEYS[1]) == 1 then redis.call("HSET", KEYS[1], ARGV[1], ARGV[2]) end
return 0`;

/**
 * Gives a refused dead letter another id, so that a job with its id can be added: no agent was informed of the refused
 * one.
 * KEYS: the job, its new key, the dead letters. ARGV: its id, the new id.
 */
const SET_ASIDE = `
local at = redis.call("ZSCORE", KEYS[3], ARGV[1])
if not at or string.sub(redis.call("HGET", KEYS[1], "failedReason") or "", 1, 8) ~= "refused:" then return 0 end
redis.call("RENAME", KEYS[1], KEYS[2])
redis.call("ZREM", KEYS[3], ARGV[1])
redis.call("ZADD", KEYS[3], at, ARGV[2])
return 1`;

/**
 * Finds jobs that run, or wait for their first run, by their deduplication ids.
 * KEYS: for each deduplication id, the key that holds the job's id. ARGV: the prefix of the jobs' keys.
 * Returns 1 for each whose job has never started or is locked, 0 for all others.
 */
const IN_HAND = `
local found = {}
for at, key in ipairs(KEYS) do
  local id = redis.call("GET", key)
  local job = ARGV[1] .. (id or "")
  local isThere = id and redis.call("EXISTS", job) == 1
  local isInHand = isThere and (redis.call("HEXISTS", job, "ats") == 0 or redis.call("EXISTS", job .. ":lock") == 1)
  found[at] = isInHand and 1 or 0
end
return found`;

const LONGEST_REASON = 500;

const causeSchema = z.object({
  code: z.enum(["worker_died", "failed", "timed_out", "stopped", "refused"]),
  message: z.string(),
  deaths: z.number().int(),
});

/** Notes about a job from its earlier runs. */
export interface Marks {
  readonly cancelled: string | undefined;
  /** Why the job is to be given up. */
  readonly cause: DeadCause | undefined;
}

/** Our notes on jobs in Redis. They are fields of the job and disappear with it. */
export class BullmqMarks {
  readonly #connection: BullmqConnection;
  readonly #places: BullmqPlaces;

  constructor(connection: BullmqConnection, places: BullmqPlaces) {
    this.#connection = connection;
    this.#places = places;
  }

  async cancel(queue: string, jobId: string, reason: string): Promise<CancelOutcome> {
    const keys = [jobId, `${jobId}:lock`, "active"].map((part) => this.#places.keyOf(queue, part));
    for (;;) {
      const state = await this.#connection.run((client) =>
        client.eval(CANCEL, keys.length, ...keys, jobId, reason.slice(0, LONGEST_REASON)),
      );
      if (state === 0) return "unknown";
      if (state === 2) return "asked";
      // A job that a worker has taken in between cannot be removed; the next attempt marks it.
      if (await this.#places.remove(queue, jobId)) return "removed";
    }
  }

  async setAsideRefused(queue: string, jobId: string): Promise<void> {
    const aside = `${jobId}/${createId("refused")}`;
    const keys = [jobId, aside, "failed"].map((part) => this.#places.keyOf(queue, part));
    await this.#connection.run((client) => client.eval(SET_ASIDE, keys.length, ...keys, jobId, aside));
  }

  async noteCause(queue: string, jobId: string, cause: DeadCause): Promise<void> {
    await this.#note(queue, jobId, "troupe-dead", JSON.stringify(cause));
  }

  async of(queue: string, jobId: string): Promise<Marks> {
    const key = this.#places.keyOf(queue, jobId);
    const [cancelled, cause] = await this.#connection.run((client) =>
      client.hmget(key, "troupe-cancel", "troupe-dead"),
    );
    const parsed = causeSchema.safeParse(cause && parseJson(cause, { what: "a mark of a job" }));
    return { cancelled: cancelled ?? undefined, cause: parsed.success ? parsed.data : undefined };
  }

  /** For each of these deduplication ids, whether its job runs or waits for its first run. */
  async areInHand(queue: string, names: readonly string[]): Promise<boolean[]> {
    if (names.length === 0) return [];
    const keys = names.map((name) => this.#places.keyOf(queue, `de:${name}`));
    const answer = await this.#connection.run((client) =>
      client.eval(IN_HAND, keys.length, ...keys, this.#places.keyOf(queue, "")),
    );
    return names.map((_name, at) => Array.isArray(answer) && answer[at] === 1);
  }

  /** The reasons for which these running jobs are to be cancelled, by job id. */
  async cancelled(queue: string, jobIds: readonly string[]): Promise<Map<string, string>> {
    const reasons = new Map<string, string>();
    const answers = await this.#connection.run((client) => {
      const pipeline = client.pipeline();
      for (const jobId of jobIds) pipeline.hget(this.#places.keyOf(queue, jobId), "troupe-cancel");
      return pipeline.exec();
    });
    for (const [place, jobId] of jobIds.entries()) {
      const reason = answers?.[place]?.[1];
      if (typeof reason === "string") reasons.set(jobId, reason);
    }
    return reasons;
  }

  /**
   * Replaces the data of a job that cannot be parsed with data that will be refused; workers would stop at it
   * otherwise.
   */
  async repair(queue: string, jobId: string): Promise<void> {
    const key = this.#places.keyOf(queue, jobId);
    const [data, opts] = await this.#connection.run((client) => client.hmget(key, "data", "opts"));
    if (!isJson(data)) await this.#note(queue, jobId, "data", "null");
    if (!isJson(opts)) await this.#note(queue, jobId, "opts", "{}");
  }

  async #note(queue: string, jobId: string, field: string, value: string): Promise<void> {
    const key = this.#places.keyOf(queue, jobId);
    await this.#connection.run((client) => client.eval(NOTE, 1, key, field, value));
  }
}

function isJson(text: string | null | undefined): boolean {
  try {
    JSON.parse(text ?? "null");
    return true;
  } catch {
    return false;
  }
}
