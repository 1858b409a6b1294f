import { type Clock, createDeferred, type Deferred } from "../base/index.ts";
import { JobStoppedError } from "../errors/index.ts";
import type { DrainOutcome } from "./ports.ts";
import { type JobEnd, type JobTask, RunningJob, type RunSettings } from "./running-job.ts";

const LEAVING = "its worker leaves";
/** How long before the end of a drain what still runs hears of it, at most, in milliseconds. */
const LONGEST_NOTICE_MS = 2_000;

/**
 * All jobs that this process runs, of all its queues.
 * Owns: that none is begun after a drain, and when the drain is over. Does not own: where jobs come from and go to.
 */
export class RunningJobs {
  readonly #clock: Clock;
  readonly #settings: RunSettings;
  readonly #leaving = new AbortController();
  readonly #jobs = new Map<string, { readonly job: RunningJob; readonly end: Promise<JobEnd> }>();
  /** Those whose end has not been told to the queue yet are among them. */
  #held = 0;
  #idle: Deferred<void> | undefined;
  #drained: Promise<DrainOutcome> | undefined;

  constructor(settings: Omit<RunSettings, "leaving">) {
    this.#clock = settings.clock;
    this.#settings = { ...settings, leaving: this.#leaving.signal };
  }

  get isLeaving(): boolean {
    return this.#leaving.signal.aborted;
  }

  has(id: string): boolean {
    return this.#jobs.has(id);
  }

  /** Runs a job under a name that is its own. Where one of the name runs here already, its end is the end of this one too. */
  async run(id: string, task: JobTask): Promise<JobEnd> {
    const known = this.#jobs.get(id);
    if (known) return await known.end;
    const job = new RunningJob(task, this.#settings);
    const end = job.end();
    this.#jobs.set(id, { job, end });
    try {
      return await end;
    } finally {
      this.#jobs.delete(id);
    }
  }

  /** Counts work as running until it is over: a job, with what is done for it before and after. */
  async hold<T>(work: () => Promise<T>): Promise<T> {
    this.#held += 1;
    try {
      return await work();
    } finally {
      this.#held -= 1;
      if (this.#held === 0) this.#idle?.resolve();
    }
  }

  cancel(id: string, reason: string): boolean {
    const known = this.#jobs.get(id);
    known?.job.stop("cancelled", reason);
    return known !== undefined;
  }

  ids(): string[] {
    return [...this.#jobs.keys()];
  }

  drain(timeoutMs: number): Promise<DrainOutcome> {
    this.#drained ??= this.#drain(timeoutMs);
    return this.#drained;
  }

  async #drain(timeoutMs: number): Promise<DrainOutcome> {
    this.#leaving.abort(new JobStoppedError("drained", LEAVING));
    const notice = Math.min(LONGEST_NOTICE_MS, Math.floor(timeoutMs / 2));
    if (!(await this.#isIdleWithin(timeoutMs - notice))) {
      for (const { job } of this.#jobs.values()) job.stop("drained", LEAVING);
      await this.#isIdleWithin(notice);
    }
    return { left: this.#held };
  }

  async #isIdleWithin(ms: number): Promise<boolean> {
    if (this.#held === 0) return true;
    const idle = createDeferred();
    this.#idle = idle;
    const cancel = this.#clock.setDelay(ms, () => idle.resolve());
    await idle.promise;
    cancel();
    return this.#held === 0;
  }
}
