import { hostname } from "node:os";
import { pid } from "node:process";
import type { Job as BullJob, Worker } from "bullmq";
import { z } from "zod";
import { backoffDelay } from "../base/index.ts";
import { UnsupportedError } from "../errors/index.ts";
import { faultOf, lostLockOf } from "./bullmq-faults.ts";
import type { CheckedOptions } from "./bullmq-options.ts";
import type { BullmqCancellations } from "./bullmq-cancellations.ts";
import { type BullmqKeyspace, isSetAside, textOfCause } from "./bullmq-keyspace.ts";
import type { BullmqPresence } from "./bullmq-presence.ts";
import type { BullmqPackage, BullmqServer, RunOfJob } from "./bullmq-server.ts";
import { MAX_TRIES, mayDieAgain, type QueueWork, TRY_PAUSES } from "./checks.ts";
import type { Envelope, Job } from "./jobs.ts";
import { type DeadCause, WAKE_QUEUE, type WorkOptions } from "./ports.ts";
import type { JobEnd, RunningJobs } from "./running-jobs.ts";

export interface WorkerAround extends Pick<WorkOptions, "onDead"> {
  readonly onFault: NonNullable<WorkOptions["onFault"]>;
  readonly options: CheckedOptions;
  readonly server: BullmqServer;
  readonly keyspace: BullmqKeyspace;
  readonly cancellations: BullmqCancellations;
  readonly presence: BullmqPresence;
  readonly running: RunningJobs;
}

/** Pause after a fault before a worker asks for jobs again, in milliseconds; bullmq's 15 s are too long. */
const FAULT_PAUSE_MS = 1_000;
/** Disables bullmq's limit of stalls: this class decides about such jobs, because it can inform their agents. */
const NEVER = 1_000_000_000;
/** Number of remembered finished runs. The end of a run is not stored if the job lost its lock. */
const ENDS_KEPT = 1_000;

/** Number of waiting wakes that the last worker checks. */
const NEEDLESS_AT_ONCE = 1_000;

const causeSchema = z.object({
  code: z.enum(["worker_died", "failed", "timed_out", "stopped", "refused"]),
  message: z.string(),
  deaths: z.number().int(),
});

/**
 * Takes the jobs of one queue and runs them in this process.
 * Owns: the state of a job in its queue. Does not own: running it, and when to leave.
 * 1. A dead letter is stored after the agent was informed; if the process dies in between, the agent is informed again.
 * 2. A job of a later version is returned to the queue, for a worker that supports it. A refused job is not run, no agent is informed of
 *    it, and its id becomes free for the genuine job.
 * 3. A job that lost its lock and is taken again while it still runs in this process, or has just ended, is not started again.
 * 4. The last worker that leaves removes the wakes of agents that need no activation.
 */
export class BullmqWorker {
  readonly work: QueueWork;
  readonly #around: WorkerAround;
  readonly #package: BullmqPackage;
  #worker: Worker<Envelope, void> | undefined;
  readonly #ends = new Set<string>();
  /** Stalled jobs for which `replaceUnreadable` is running. */
  readonly #replacing = new Set<string>();
  /** Jobs whose locks bullmq has just failed to renew. */
  #unrenewed: readonly string[] = [];
  /** The runs in this process, by job id. */
  readonly #runs = new Map<string, RunOfJob>();
  deaths = 0;
  refused = 0;
  begun = 0;
  active = 0;

  static async start(work: QueueWork, around: WorkerAround): Promise<BullmqWorker> {
    const own = new BullmqWorker(work, around, await around.server.package());
    await own.#start();
    return own;
  }

  private constructor(work: QueueWork, around: WorkerAround, bullmq: BullmqPackage) {
    this.work = work;
    this.#around = around;
    this.#package = bullmq;
  }

  async #start(): Promise<void> {
    const { server, options } = this.#around;
    const { queue, concurrency, rateLimit } = this.work;
    const worker = await server.worker(queue, (job, token = "") => this.#take(job, token), {
      // Stored with each job that it takes (`processedBy`), for operators.
      name: `${hostname()}:${pid}`,
      concurrency,
      lockDuration: options.lockMs,
      stalledInterval: options.deathCheckMs,
      // A worker may die after it received the signal of a new job, so idle workers poll as often as they look for dead ones.
      drainDelay: options.deathCheckMs / 1_000,
      maxStalledCount: NEVER,
      runRetryDelay: FAULT_PAUSE_MS,
      settings: { backoffStrategy: (tries) => backoffDelay(tries, Math.random(), TRY_PAUSES) },
      ...(rateLimit ? { limiter: { max: rateLimit.max, duration: rateLimit.perMs } } : {}),
      onError: (error) => this.#noteFault(error),
    });
    worker.on("lockRenewalFailed", (jobIds) => this.#noteLostLocks(jobIds));
    worker.on("stalled", (jobId) => this.#noteDeath(jobId));
    this.#worker = worker;
  }

  async ready(): Promise<void> {
    await this.#worker?.waitUntilReady();
  }

  /** Takes no more jobs, and resolves when the running ones have ended. */
  async close(): Promise<void> {
    await this.#worker?.close();
    await this.#removeNeedless();
  }

  /** Stops the running jobs for which a stop was requested. */
  async lookForCancels(): Promise<void> {
    const { cancellations, running } = this.#around;
    const { queue } = this.work;
    const reasons = await cancellations.read(queue, [...this.#runs.values()]);
    for (const [jobId, reason] of reasons) running.cancel(`${queue}/${jobId}`, reason);
  }

  /**
   * A wake that was added while another one of the same agent ran starts waiting when that one ends, but usually has nothing to do. If no
   * worker remains to run it, this worker removes it.
   */
  async #removeNeedless(): Promise<void> {
    const { keyspace, presence, server } = this.#around;
    const { queue, areNeeded } = this.work;
    if (!areNeeded || (await presence.count(queue)) > 0) return;
    const wakes = (await keyspace.waiting(queue, NEEDLESS_AT_ONCE)).flatMap((job) => {
      const opened = keyspace.open(queue, job);
      const data = server.decoded(job.data) as Envelope;
      return "job" in opened ? { id: job.id ?? "", data, agent: opened.job } : [];
    });
    const isNeeded = await areNeeded(wakes.map(({ agent }) => agent));
    const removed: typeof wakes = [];
    for (const [at, wake] of wakes.entries()) {
      if (!isNeeded[at] && (await keyspace.remove(queue, wake.id))) removed.push(wake);
    }
    // A process that posted a message in between found the wake in the queue, and added none.
    const isNeededAgain = await areNeeded(removed.map(({ agent }) => agent));
    for (const [at, { data, agent }] of removed.entries()) if (isNeededAgain[at]) await keyspace.wake(data, agent);
  }

  #noteFault(error: unknown): void {
    const { onFault, options, server } = this.#around;
    const isTold = error instanceof Error && this.#unrenewed.some((jobId) => error.message.endsWith(jobId));
    if (!isTold) onFault(faultOf(this.work.queue, error, { server, redact: options.redact }));
  }

  #noteLostLocks(jobIds: readonly string[]): void {
    const { onFault, running } = this.#around;
    const { queue } = this.work;
    // bullmq also emits an error event for each of these jobs.
    this.#unrenewed = jobIds;
    queueMicrotask(() => (this.#unrenewed = []));
    // A job that has just ended releases its lock, so a renewal that was sent earlier may find no lock.
    const lost = jobIds.filter((jobId) => running.has(`${queue}/${jobId}`));
    for (const jobId of lost) onFault(lostLockOf(queue, jobId));
  }

  #noteDeath(jobId: string): void {
    const { keyspace, onFault, server } = this.#around;
    this.deaths += 1;
    if (this.#replacing.has(jobId)) return;
    this.#replacing.add(jobId);
    keyspace
      .replaceUnreadable(this.work.queue, jobId)
      .catch((error: unknown) => onFault(server.translated(error)))
      .finally(() => this.#replacing.delete(jobId));
  }

  async #take(job: BullJob<Envelope>, token: string): Promise<void> {
    const { running } = this.#around;
    await running.hold(async () => {
      // The job arrived while the worker was leaving. A wake is handled all the same, because its agent may need no activation any more.
      if (running.isLeaving && this.work.queue !== WAKE_QUEUE) return this.#giveBack(job, token);
      this.begun += 1;
      this.active += 1;
      try {
        return await this.#handle(job, token);
      } finally {
        this.active -= 1;
      }
    });
  }

  async #handle(job: BullJob<Envelope>, token: string): Promise<void> {
    const { running, keyspace, onFault } = this.#around;
    const { queue } = this.work;
    const { id = "", stalledCounter: deaths } = job;
    const opened = keyspace.open(queue, job);
    if ("later" in opened && !isSetAside(id) && job.attemptsMade + 1 < MAX_TRIES) {
      onFault(new UnsupportedError(`a job of queue "${queue}" is left to another worker: ${opened.later}`));
      throw new Error(opened.later);
    }
    if (!("job" in opened)) {
      if (queue !== WAKE_QUEUE && !isSetAside(id)) {
        await keyspace.setAside(queue, job.data);
        // The id must become free, even if the job's options would keep it.
        job.opts.removeOnComplete = true;
        return undefined;
      }
      this.refused += 1;
      const message = "later" in opened ? opened.later : opened.refused;
      throw this.#dead({ code: "refused", message, deaths });
    }
    const cause = causeSchema.safeParse(job.progress);
    if (cause.success) return this.#bury(job, token, opened.job, cause.data);
    if (job.attemptsStarted > 1 && (await this.#isCancelled(job, token))) return undefined;
    if (deaths > 0 && this.#ends.has(runOf(job))) return undefined;
    if (!running.has(`${queue}/${id}`) && !mayDieAgain(opened.job, deaths)) {
      return this.#bury(job, token, opened.job, this.#deathCause(deaths));
    }
    return this.#settle(job, token, opened.job, await this.#run(job, opened.job));
  }

  async #isCancelled(job: BullJob<Envelope>, token: string): Promise<boolean> {
    const { queue } = this.work;
    const run = { jobId: job.id ?? "", addedAt: job.timestamp };
    return (await this.#orLater(job, token, this.#around.cancellations.read(queue, [run]))).size > 0;
  }

  async #run(job: BullJob<Envelope>, work: Job): Promise<JobEnd> {
    const { queue } = this.work;
    const { id: jobId = "", timestamp: addedAt } = job;
    this.#runs.set(jobId, { jobId, addedAt });
    try {
      return await this.#around.running.run(`${queue}/${jobId}`, {
        queue,
        deaths: job.stalledCounter,
        isRepeatable: work.kind === "wake" || work.isRepeatable,
        timeoutMs: work.kind === "wake" ? undefined : work.timeoutMs,
        run: (run) => this.work.run(work, run),
      });
    } finally {
      this.#runs.delete(jobId);
    }
  }

  async #settle(job: BullJob<Envelope>, token: string, work: Job, end: JobEnd): Promise<void> {
    const { stalledCounter: deaths } = job;
    if (end.type === "done" || end.type === "cancelled") {
      this.#noteEnd(runOf(job));
      return;
    }
    if (end.type === "again") return this.#giveBack(job, token);
    if (end.type === "dead") return this.#bury(job, token, work, { code: end.code, message: end.message, deaths });
    if (job.attemptsMade + 1 >= MAX_TRIES) {
      return this.#bury(job, token, work, { code: "failed", message: end.message, deaths });
    }
    throw new Error(end.message);
  }

  #noteEnd(run: string): void {
    this.#ends.add(run);
    for (const oldest of this.#ends) {
      if (this.#ends.size <= ENDS_KEPT) return;
      this.#ends.delete(oldest);
    }
  }

  async #giveBack(job: BullJob<Envelope>, token: string): Promise<void> {
    await this.#around.server.giveBack(job, token);
    throw new this.#package.WaitingError();
  }

  async #bury(job: BullJob<Envelope>, token: string, work: Job, cause: DeadCause): Promise<void> {
    const { onDead } = this.#around;
    const told = async (): Promise<void> => {
      // Stored with the job: if this process dies now, the next worker reports the same cause and does not run the job.
      await job.updateProgress({ ...cause, message: cause.message.toWellFormed().replaceAll("\0", "\uFFFD") });
      await onDead(work, cause);
    };
    await this.#orLater(job, token, told());
    throw this.#dead(cause);
  }

  /** Waits for a step that must succeed before the job continues. If it fails, the job is delayed and no attempt is counted. */
  async #orLater<T>(job: BullJob<Envelope>, token: string, step: Promise<T>): Promise<T> {
    try {
      return await step;
    } catch (error) {
      this.#around.onFault(this.#around.server.translated(error));
      const pause = backoffDelay(Math.max(1, job.attemptsStarted), Math.random(), TRY_PAUSES);
      await job.moveToDelayed(Date.now() + pause, token);
      throw new this.#package.DelayedError();
    }
  }

  #dead(cause: DeadCause): Error {
    return new this.#package.UnrecoverableError(textOfCause(cause));
  }

  #deathCause(deaths: number): DeadCause {
    const times = deaths === 1 ? "once, and the job may not be repeated" : `${deaths} times`;
    const { lockMs } = this.#around.options;
    return {
      code: "worker_died",
      deaths,
      message: `its worker died, or did not renew its lock for ${lockMs} ms: ${times}`,
    };
  }
}

/** Identifies one run: a job that was added again after it ended has another value. */
function runOf({ id = "", timestamp }: BullJob<Envelope>): string {
  return `${id}@${timestamp}`;
}
