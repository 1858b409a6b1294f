import type { BullmqConnection } from "./bullmq-connection.ts";
import type { BullmqKeyspace } from "./bullmq-keyspace.ts";
import type { CancelOutcome } from "./ports.ts";

/** How long a request is kept, in seconds: its worker reads it within `cancelCheckMs`, or its successor when it begins. */
const KEPT_SECONDS = 7 * 24 * 3_600;
const LONGEST_REASON = 500;

/** One run of a job: a job that is added again after its end is another one. */
export interface RunOfJob {
  readonly jobId: string;
  /** When the job was added, in milliseconds since the epoch. */
  readonly addedAt: number;
}

/**
 * Requests to stop running jobs, in keys of our own beside the queue.
 *
 * Invariant: a request belongs to one run. A job that is added again under the same id is not stopped by it.
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
      // A job that is being run cannot be removed. Where it has changed its state meanwhile, the next attempt sees that.
      if ((await this.#keyspace.stateOf(queue, jobId)) !== "active") {
        if (await this.#keyspace.remove(queue, jobId)) return "removed";
        continue;
      }
      const key = this.#keyOf(queue, { jobId, addedAt: job.timestamp });
      await this.#connection.run((client) => client.set(key, reason.slice(0, LONGEST_REASON), "EX", KEPT_SECONDS));
      if ((await this.#keyspace.stateOf(queue, jobId)) === "active") return "asked";
    }
  }

  /** The reasons for which runs are to be stopped, by job id. */
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
