import type { BullmqConnection } from "./bullmq-connection.ts";
import type { BullmqKeyspace } from "./bullmq-keyspace.ts";
import type { CancelOutcome } from "./ports.ts";

/**
 * How long a request is kept, in seconds. The job's worker reads it within `cancelCheckMs`, or the next worker reads it when it takes the
 * job.
 */
const KEPT_SECONDS = 7 * 24 * 3_600;
const LONGEST_REASON = 500;

/** One run of a job. A job that is added again after it ended is another run. */
export interface RunOfJob {
  readonly jobId: string;
  /** When the job was added, in milliseconds since the epoch. */
  readonly addedAt: number;
}

/**
 * Requests to stop running jobs, in separate keys beside the queue.
 *
 * Invariant: a request applies to one run. It does not stop a job that is added again under the same id.
 */
export class BullmqCancellations {
  readonly #connection: BullmqConnection;
  readonly #keyspace: BullmqKeyspace;

  constructor(connection: BullmqConnection, keyspace: BullmqKeyspace) {
    this.#connection = connection;
    this.#keyspace = keyspace;
  }

  async cancel(queue: string, jobId: string, reason: string): Promise<CancelOutcome> {
    for (;;) {
      const job = await this.#keyspace.job(queue, jobId);
      if (!job || job.finishedOn !== undefined) return "unknown";
      // An active job cannot be removed. If its state changed in between, the next attempt handles the new state.
      if ((await this.#keyspace.stateOf(queue, jobId)) !== "active") {
        if (await this.#keyspace.remove(queue, jobId)) return "removed";
        continue;
      }
      const key = this.#keyOf(queue, { jobId, addedAt: job.timestamp });
      await this.#connection.run((client) => client.set(key, reason.slice(0, LONGEST_REASON), "EX", KEPT_SECONDS));
      if ((await this.#keyspace.stateOf(queue, jobId)) === "active") return "asked";
    }
  }

  /** The reasons for the requested stops, by job id. */
  async read(queue: string, runs: readonly RunOfJob[]): Promise<Map<string, string>> {
    const reasons = new Map<string, string>();
    if (runs.length === 0) return reasons;
    const keys = runs.map((run) => this.#keyOf(queue, run));
    const found = await this.#connection.run((client) => client.mget(keys));
    for (const [at, { jobId }] of runs.entries()) {
      const reason = found[at];
      if (typeof reason === "string") reasons.set(jobId, reason);
    }
    return reasons;
  }

  #keyOf(queue: string, { jobId, addedAt }: RunOfJob): string {
    return this.#keyspace.ownKey(queue, `cancel:${addedAt}:${jobId}`);
  }
}
