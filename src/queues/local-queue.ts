import type { DeadLetter, CancelOutcome, DeadCause, QueueCount, WorkOptions } from "./ports.ts";
import { backoffDelay, type Clock, createTimerQueue } from "../base/index.ts";
import { MAX_TRIES, type QueueWork, TRY_PAUSES } from "./checks.ts";
import type { Job } from "./jobs.ts";
import type { JobEnd, RunningJobs } from "./running-jobs.ts";

export interface LocalAround {
  readonly clock: Clock;
  readonly random: () => number;
  readonly running: RunningJobs;
  readonly deadLettersKept: number;
}

interface LocalJob {
  readonly id: string;
  readonly job: Job;
  readonly priority: number;
  state: "waiting" | "delayed" | "running";
  /** When it entered this state, in milliseconds since the epoch. */
  since: number;
  /** Removes it from the waiting jobs or stops its timer. */
  leave: () => void;
  tries: number;
  /** The job that was added while this one ran; it runs next. */
  next: Job | undefined;
  /** Why the job is given up; kept until `onDead` succeeds. */
  cause: DeadCause | undefined;
}

const nothing = (): void => undefined;

/**
 * One queue within this process.
 * Owns: which of its jobs wait, run or are dead, and when the next one starts. Does not own: how a job is run.
 * 1. A job has one state and one id. 2. At most `concurrency` jobs run; the rate limit is respected.
 */
export class LocalQueue {
  readonly #name: string;
  readonly #around: LocalAround;
  readonly #jobs = new Map<string, LocalJob>();
  /** Waiting jobs by priority: the timer queue sorts by priority instead of time. */
  readonly #line = createTimerQueue();
  readonly #dead: LocalDeadLetters;
  #work: (QueueWork & Pick<WorkOptions, "onDead">) | undefined;
  #wasAddedTo = false;
  #active = 0;
  #begun = { at: 0, count: 0 };
  #isWaitingForRate = false;
  #isPumping = false;

  constructor(name: string, around: LocalAround) {
    this.#name = name;
    this.#around = around;
    this.#dead = new LocalDeadLetters(around.deadLettersKept);
  }

  get wasAddedTo(): boolean {
    return this.#wasAddedTo;
  }

  get isWorkedOn(): boolean {
    return this.#work !== undefined;
  }

  work(work: QueueWork & Pick<WorkOptions, "onDead">): void {
    this.#work = work;
    this.#pump();
  }

  /** Adds a job. If the id exists already, the existing job stays; if it runs and `isFollowed` is set, the new job runs after it. */
  add(id: string, job: Job, options: { priority: number; delayMs: number; isFollowed: boolean }): void {
    this.#wasAddedTo = true;
    const { priority, delayMs, isFollowed } = options;
    const known = this.#jobs.get(id);
    if (known) {
      if (!isFollowed) return;
      if (known.state === "running") known.next = job;
      if (known.state === "delayed") this.#enter(known);
      return;
    }
    if (!isFollowed && this.#dead.has(id)) return;
    const added: LocalJob = {
      id,
      job,
      priority,
      state: "waiting",
      since: this.#around.clock.now(),
      leave: nothing,
      tries: 0,
      next: undefined,
      cause: undefined,
    };
    this.#jobs.set(id, added);
    if (delayMs > 0) this.#delay(added, delayMs);
    else this.#enter(added);
  }

  /** Whether the job is running, or waits for its first run. */
  isInHand(id: string): boolean {
    const known = this.#jobs.get(id);
    return known?.state === "running" || (known?.state === "waiting" && known.tries === 0);
  }

  cancel(id: string, reason: string): CancelOutcome {
    const known = this.#jobs.get(id);
    if (!known) return "unknown";
    if (known.state === "running") {
      this.#around.running.cancel(this.#runName(id), reason);
      return "asked";
    }
    known.leave();
    this.#jobs.delete(id);
    return "removed";
  }

  counts(): Omit<QueueCount, "queue" | "deaths" | "refused"> {
    const delayed = this.#jobs.size - this.#line.size - this.#active;
    const ages = { waitingSince: this.#oldest("waiting"), activeSince: this.#oldest("running") };
    return { waiting: this.#line.size, active: this.#active, delayed, dead: this.#dead.size, ...ages };
  }

  #oldest(wanted: LocalJob["state"]): number | null {
    const times = [...this.#jobs.values()].flatMap(({ state, since }) => (state === wanted ? since : []));
    return times.length === 0 ? null : times.reduce((first, time) => Math.min(first, time));
  }

  deadLetters(limit: number): DeadLetter[] {
    return this.#dead.newest(limit);
  }

  close(): void {
    for (const { leave } of this.#jobs.values()) leave();
    this.#jobs.clear();
  }

  #enter(job: LocalJob, isFirst = false): void {
    job.leave();
    job.state = "waiting";
    job.since = this.#around.clock.now();
    job.leave = this.#line.add(isFirst ? job.priority - 0.5 : job.priority, () => void this.#run(job));
    this.#pump();
  }

  #delay(job: LocalJob, ms: number): void {
    job.state = "delayed";
    job.leave = this.#around.clock.setDelay(ms, () => this.#enter(job));
  }

  /** Starts jobs after the call that adds one has returned. */
  #pump(): void {
    if (this.#isPumping || !this.#work) return;
    this.#isPumping = true;
    queueMicrotask(() => {
      this.#isPumping = false;
      while (this.#line.size > 0 && this.#isRoom()) this.#line.takeDue(Number.MAX_VALUE)?.();
    });
  }

  #isRoom(): boolean {
    const { clock, running } = this.#around;
    if (!this.#work || running.isLeaving || this.#active >= this.#work.concurrency) return false;
    const { rateLimit } = this.#work;
    if (!rateLimit) return true;
    const now = clock.elapsed();
    if (now - this.#begun.at >= rateLimit.perMs) this.#begun = { at: now, count: 0 };
    if (this.#begun.count === rateLimit.max) {
      this.#waitForRate(this.#begun.at + rateLimit.perMs - now);
      return false;
    }
    this.#begun.count += 1;
    return true;
  }

  #waitForRate(ms: number): void {
    if (this.#isWaitingForRate) return;
    this.#isWaitingForRate = true;
    this.#around.clock.setDelay(ms, () => {
      this.#isWaitingForRate = false;
      this.#pump();
    });
  }

  async #run(job: LocalJob): Promise<void> {
    const { running } = this.#around;
    job.state = "running";
    job.since = this.#around.clock.now();
    job.leave = nothing;
    this.#active += 1;
    await running.hold(async () => {
      const end = job.cause ? await this.#bury(job, job.cause) : await this.#endOf(job);
      this.#active -= 1;
      this.#settle(job, end);
    });
    this.#pump();
  }

  async #endOf(job: LocalJob): Promise<JobEnd> {
    const { running } = this.#around;
    const end = await running.run(this.#runName(job.id), {
      queue: this.#name,
      deaths: 0,
      isRepeatable: job.job.kind === "wake" || job.job.isRepeatable,
      timeoutMs: job.job.kind === "wake" ? undefined : job.job.timeoutMs,
      run: async (run) => (await this.#work?.run(job.job, run)) ?? "done",
    });
    job.tries += 1;
    if (end.type === "retry" && job.tries < MAX_TRIES) return end;
    if (end.type === "retry") return this.#bury(job, { code: "failed", message: end.message, deaths: 0 });
    return end.type === "dead" ? this.#bury(job, { code: end.code, message: end.message, deaths: 0 }) : end;
  }

  /** Stores a dead letter once its agent was informed; until then `onDead` is retried. */
  async #bury(job: LocalJob, cause: DeadCause): Promise<JobEnd> {
    job.cause = cause;
    try {
      await this.#work?.onDead(job.job, cause);
    } catch {
      job.tries += 1;
      return { type: "retry", message: "its agent could not be informed" };
    }
    const { id } = job;
    this.#dead.keep({ queue: this.#name, jobId: id, job: job.job, cause, at: this.#around.clock.now() });
    return { type: "done" };
  }

  #settle(job: LocalJob, end: JobEnd): void {
    if (end.type === "again") {
      this.#enter(job, true);
      return;
    }
    if (end.type === "retry") {
      this.#delay(job, backoffDelay(job.tries, this.#around.random(), TRY_PAUSES));
      return;
    }
    this.#jobs.delete(job.id);
    const { id, next, priority } = job;
    if (next) this.add(id, next, { priority, delayMs: 0, isFollowed: true });
  }

  #runName(id: string): string {
    return `${this.#name}/${id}`;
  }
}

/** The newest dead letters of one queue, up to a limit. */
export class LocalDeadLetters {
  readonly #kept: number;
  /** In the order in which they were added. */
  readonly #letters: DeadLetter[] = [];
  readonly #counts = new Map<string, number>();

  constructor(kept: number) {
    this.#kept = kept;
  }

  get size(): number {
    return this.#letters.length;
  }

  has(jobId: string): boolean {
    return this.#counts.has(jobId);
  }

  keep(letter: DeadLetter): void {
    this.#letters.push(letter);
    this.#count(letter.jobId, 1);
    if (this.#letters.length <= this.#kept) return;
    const oldest = this.#letters.shift();
    if (oldest) this.#count(oldest.jobId, -1);
  }

  newest(limit: number): DeadLetter[] {
    return this.#letters.slice(-limit).toReversed();
  }

  #count(jobId: string, by: 1 | -1): void {
    const count = (this.#counts.get(jobId) ?? 0) + by;
    if (count === 0) this.#counts.delete(jobId);
    else this.#counts.set(jobId, count);
  }
}
