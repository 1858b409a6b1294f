import { type Clock } from "../base/index.ts";
import { InvariantError, JobStoppedError, type JobStop, TroupeError } from "../errors/index.ts";
import type { DeadCode, JobOutcome, JobRun, DrainOutcome } from "./ports.ts";

const LEAVING = "its worker leaves";
/** How long before the end of a drain running jobs are aborted, at most, in milliseconds. */
const LONGEST_NOTICE_MS = 2_000;

/**
 * All jobs that this process runs, from all its queues.
 * Owns: that no job starts after a drain begins, and when the drain is over. Does not own: taking jobs from their queues and recording
 * their ends.
 */
export class RunningJobs {
  readonly #clock: Clock;
  readonly #settings: RunSettings;
  readonly #leaving = new AbortController();
  readonly #jobs = new Map<string, { readonly job: RunningJob; readonly end: Promise<JobEnd> }>();
  /** Includes jobs whose end is not recorded in the queue yet. */
  #held = 0;
  #idle: PromiseWithResolvers<void> | undefined;
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

  /** Runs a job under a unique id. If a job with this id is running already, both calls return its end. */
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

  /** Counts work as running until it is over: a job, including the steps before and after it. */
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
    const idle = Promise.withResolvers<void>();
    this.#idle = idle;
    const cancel = this.#clock.setDelay(ms, () => idle.resolve());
    await idle.promise;
    cancel();
    return this.#held === 0;
  }
}

/** One run of one job. */
export interface JobTask {
  readonly queue: string;
  readonly deaths: number;
  readonly isRepeatable: boolean;
  readonly timeoutMs: number | undefined;
  readonly run: (run: JobRun) => Promise<JobOutcome>;
}

/** What to do with the job next. */
export type JobEnd =
  | { readonly type: "done" }
  | { readonly type: "cancelled" }
  | { readonly type: "again" }
  | { readonly type: "retry"; readonly message: string }
  | { readonly type: "dead"; readonly code: DeadCode; readonly message: string };

export interface RunSettings {
  readonly clock: Clock;
  /** How long a processor may continue after its signal was aborted, in milliseconds. */
  readonly graceMs: number;
  readonly leaving: AbortSignal;
  /** Removes secrets from the errors of processors. */
  readonly redact: (text: string) => string;
}

/**
 * One run of a processor.
 * Owns: its signal, its timeout, and giving it up. Does not own: what happens to the job afterwards.
 * 1. It ends once, and at the latest `graceMs` after it was cancelled or timed out.
 * 2. Only the first reason to stop counts.
 */
export class RunningJob {
  readonly #task: JobTask;
  readonly #settings: RunSettings;
  readonly #controller = new AbortController();
  readonly #givenUp = Promise.withResolvers<JobEnd>();
  readonly #timers: (() => void)[] = [];
  #stopped: JobStoppedError | undefined;

  constructor(task: JobTask, settings: RunSettings) {
    this.#task = task;
    this.#settings = settings;
  }

  async end(): Promise<JobEnd> {
    const { timeoutMs } = this.#task;
    if (timeoutMs !== undefined) {
      this.#after(timeoutMs, () => this.stop("timed_out", `the job did not end within ${timeoutMs} ms`));
    }
    try {
      return await Promise.race([this.#work(), this.#givenUp.promise]);
    } finally {
      for (const cancel of this.#timers.splice(0)) cancel();
    }
  }

  stop(why: JobStop, message: string): void {
    if (this.#stopped) return;
    this.#stopped = new JobStoppedError(why, message);
    this.#controller.abort(this.#stopped);
    // A draining worker does not wait for the processor; other workers still see the job as locked by this one.
    if (why !== "drained") this.#after(this.#settings.graceMs, () => this.#givenUp.resolve(this.#endOfStop()));
  }

  async #work(): Promise<JobEnd> {
    const { queue, deaths, run } = this.#task;
    const { signal } = this.#controller;
    try {
      const outcome: unknown = await run({ queue, signal, deaths, leaving: this.#settings.leaving });
      if (outcome === "done") return { type: "done" };
      // A job that was cancelled or timed out is not returned to the queue.
      if (outcome === "again") return this.#isOver() ? this.#endOfStop() : { type: "again" };
      throw new InvariantError('a processor returned neither "done" nor "again"');
    } catch (error) {
      return this.#stopped ? this.#endOfStop() : this.#endOfError(error);
    }
  }

  #isOver(): boolean {
    return this.#stopped !== undefined && this.#stopped.why !== "drained";
  }

  #endOfStop(): JobEnd {
    const { why, message } = this.#stopped ?? { why: "cancelled", message: "" };
    if (why === "cancelled") return { type: "cancelled" };
    if (why === "timed_out") return { type: "dead", code: "timed_out", message };
    if (this.#task.isRepeatable) return { type: "again" };
    return { type: "dead", code: "stopped", message: `${message}, and the job may not be repeated` };
  }

  #endOfError(error: unknown): JobEnd {
    const message = this.#settings.redact(errorText(error));
    if (error instanceof TroupeError && error.retryable) return { type: "retry", message };
    return { type: "dead", code: "failed", message };
  }

  #after(ms: number, callback: () => void): void {
    this.#timers.push(this.#settings.clock.setDelay(ms, callback));
  }
}

const LONGEST_MESSAGE = 500;

function errorText(error: unknown): string {
  const text = error instanceof Error ? `${error.name}: ${error.message}` : `it threw ${typeof error}`;
  return text.length <= LONGEST_MESSAGE ? text : `${text.slice(0, LONGEST_MESSAGE)}…`;
}
