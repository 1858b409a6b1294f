import type { DeadCause, Job, JobOutcome, JobRun, Queues, ToolJob, WorkOptions } from "../../src/queues/index.ts";

/** The same queues, seen by one process or several. */
export interface QueuesSubject {
  /** Opens the queues as another process does; the suite closes them. */
  readonly client: () => Queues;
  /** Advances the time, where it is simulated, until the promise settles. */
  readonly soon: <T>(promise: Promise<T>) => Promise<T>;
  /** Milliseconds by the clock of the queues. */
  readonly now: () => number;
  /** The time that a processor may continue after its abort signal. */
  readonly graceMs: number;
}

export const agent = { tenant: "default", agentId: "desk-7" } as const;

export function toolJob(fields: Partial<Omit<ToolJob, "kind">> = {}): Omit<ToolJob, "kind"> {
  return { ...agent, callId: "desk-7#1:1:0", attempt: 1, isRepeatable: true, ...fields };
}

interface Waiter {
  readonly isMet: () => boolean;
  readonly met: PromiseWithResolvers<void>;
}

/** Records the jobs that processors received, and controls their outcome. */
export class Recorder {
  readonly begun: { readonly job: Job; readonly run: JobRun }[] = [];
  readonly ended: Job[] = [];
  readonly dead: { readonly job: Job; readonly cause: DeadCause }[] = [];
  most = 0;
  #waiters: Waiter[] = [];

  /** Options for `work`: every job runs `run`. */
  options(
    run: (job: Job, run: JobRun) => Promise<JobOutcome | void>,
    queues: readonly string[] = ["web"],
  ): WorkOptions {
    const recorded = async (job: Job, by: JobRun): Promise<JobOutcome> => {
      this.begun.push({ job, run: by });
      this.most = Math.max(this.most, this.begun.length - this.ended.length);
      this.#look();
      try {
        return (await run(job, by)) ?? "done";
      } finally {
        this.ended.push(job);
        this.#look();
      }
    };
    return {
      wakes: { concurrency: 10, run: recorded },
      tools: { queues: Object.fromEntries(queues.map((queue) => [queue, { concurrency: 10 }])), run: recorded },
      onDead: async (job, cause) => {
        this.dead.push({ job, cause });
        this.#look();
      },
    };
  }

  /** Resolves when the condition holds for the recorded jobs. */
  async until(isMet: (recorder: Recorder) => boolean): Promise<void> {
    const waiter = { isMet: () => isMet(this), met: Promise.withResolvers<void>() };
    this.#waiters.push(waiter);
    this.#look();
    await waiter.met.promise;
  }

  #look(): void {
    this.#waiters = this.#waiters.filter(({ isMet, met }) => {
      const isNow = isMet();
      if (isNow) met.resolve();
      return !isNow;
    });
  }
}

/** Resolves with the reason once the signal is aborted. */
export async function abortOf(signal: AbortSignal): Promise<unknown> {
  if (!signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
  return signal.reason;
}

/** Polls until the counts match, or the test times out. */
export async function countsOf(queues: Queues, queue: string, isRight: (count: CountOfQueue) => boolean) {
  for (;;) {
    const [count] = await queues.counts([queue]);
    if (count && isRight(count)) return count;
    await new Promise((resolve) => setImmediate(resolve));
  }
}

export type CountOfQueue = Awaited<ReturnType<Queues["counts"]>>[number];
