import type { BullmqKeyspace } from "./bullmq-keyspace.ts";
import type { BullmqServer, RunOfJob } from "./bullmq-server.ts";
import type { CancelOutcome } from "./ports.ts";

/**
 * How long a request is kept, in seconds. The job's worker reads it within `cancelCheckMs`, or the next worker reads it when it takes the
 * job.
 */
const KEPT_SECONDS = 7 * 24 * 3_600;
const LONGEST_REASON = 500;

/**
 * Requests to stop running jobs, beside the queue.
 *
 * Invariant: a request applies to one run. It does not stop a job that is added again under the same id.
 */
export class BullmqCancellations {
  readonly #server: BullmqServer;
  readonly #keyspace: BullmqKeyspace;

  constructor(server: BullmqServer, keyspace: BullmqKeyspace) {
    this.#server = server;
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
      const run = { jobId, addedAt: job.timestamp };
      await this.#server.askToStop(queue, run, reason.slice(0, LONGEST_REASON), KEPT_SECONDS);
      if ((await this.#keyspace.stateOf(queue, jobId)) === "active") return "asked";
    }
  }

  /** The reasons for the requested stops, by job id. */
  async read(queue: string, runs: readonly RunOfJob[]): Promise<Map<string, string>> {
    return runs.length === 0 ? new Map() : await this.#server.stopsAsked(queue, runs);
  }
}
