import type { DeadCause, JobRun, Queues, ToolJob, WorkOptions } from "../../src/queues/index.ts";

/**
 * Queues within a process without guarantees: an added job waits until the test delivers it, in any order, once, twice at
 * a time, again after its end, or never.
 */
export class UnrulyQueues implements Queues {
  readonly kind = "local";
  /** Every job that was ever added. */
  readonly jobs: { readonly queue: string; readonly job: ToolJob }[] = [];
  #work: WorkOptions | undefined;

  async add(queue: string, job: Omit<ToolJob, "kind">): Promise<void> {
    this.jobs.push({ queue, job: { ...job, kind: "tool" } });
  }

  async cancel(): Promise<"unknown"> {
    return "unknown";
  }

  async work(options: WorkOptions): Promise<void> {
    this.#work = options;
  }

  /** Passes a job to its processor, as a worker would. */
  async give(index: number): Promise<void> {
    const { queue, job } = this.#at(index);
    const { signal } = new AbortController();
    const run: JobRun = { queue, signal, leaving: signal, deaths: 0 };
    await this.#work?.tools?.run(job, run);
  }

  async giveUp(index: number): Promise<void> {
    const cause: DeadCause = { code: "worker_died", message: "its worker died", deaths: 2 };
    await this.#work?.onDead(this.#at(index).job, cause);
  }

  #at(index: number): { readonly queue: string; readonly job: ToolJob } {
    const found = this.jobs[index % this.jobs.length];
    if (!found) throw new Error("no job was added yet");
    return found;
  }

  async wake(): Promise<void> {}

  async awaited(agents: readonly unknown[]): Promise<boolean[]> {
    return agents.map(() => false);
  }

  async names(): Promise<string[]> {
    return [];
  }

  async counts(): Promise<[]> {
    return [];
  }

  async workers(): Promise<number> {
    return 1;
  }

  async deadLetters(): Promise<[]> {
    return [];
  }

  async health() {
    return { isHealthy: true, roundTripMs: 0, problems: [] };
  }

  async drain() {
    return { left: 0 };
  }

  async close(): Promise<void> {}
}
