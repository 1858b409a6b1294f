import { hostname } from "node:os";
import { pid } from "node:process";
import type { Job as BullJob, Worker } from "bullmq";
import { backoffDelay } from "../base/index.ts";
import { UnsupportedError } from "../errors/index.ts";
import {
  type BullmqConnection,
  faultOf,
  translated,
  unrenewedJobOf,
  type CheckedOptions,
} from "./bullmq-connection.ts";
import type { BullmqMarks } from "./bullmq-marks.ts";
import { type BullmqPlaces, textOfCause } from "./bullmq-places.ts";
import { MAX_TRIES, mayDieAgain, type QueueWork, TRY_PAUSES } from "./checks.ts";
import { type Envelope, open, type Job } from "./jobs.ts";
import { type DeadCause, WAKE_QUEUE, type WorkOptions } from "./ports.ts";
import type { JobEnd, RunningJobs } from "./running-jobs.ts";

export interface WorkerAround extends Pick<WorkOptions, "onDead"> {
  readonly onFault: NonNullable<WorkOptions["onFault"]>;
  readonly options: CheckedOptions;
  readonly connection: BullmqConnection;
  readonly places: BullmqPlaces;
  readonly marks: BullmqMarks;
  readonly running: RunningJobs;
}

/** How long a worker waits before it asks again after a fault, in milliseconds; bullmq's 15 s are too long. */
const FAULT_PAUSE_MS = 1_000;
/**
 * A limit that no count of deaths reaches: this file decides about such a job, because here its agent can be informed.
 */
const NEVER = 1_000_000_000;
/**
 * How many finished runs are remembered: their end may not have been written down, because they had lost their lock.
 */
const ENDS_KEPT = 1_000;

type Package = Awaited<ReturnType<BullmqConnection["package"]>>;

/**
 * Takes the jobs of one queue and runs them here.
 * Owns: the state of a job in Redis. Does not own: running it, and when to leave.
 * 1. A dead letter is written after the agent was informed; if the process dies between the two, the agent is informed
 *    again.
 * 2. A job of a later version goes back, for a worker that knows it; a refused job is not run, and no agent is informed
 *    of it.
 * 3. A job that has lost its lock and is taken again while it still runs here, or has just ended here, is not started
 *    again.
 */
export class BullmqWorker {
  readonly work: QueueWork;
  readonly #around: WorkerAround;
  readonly #package: Package;
  readonly #worker: Worker<Envelope, void>;
  readonly #ends = new Set<string>();
  deaths = 0;
  refused = 0;
  begun = 0;
  active = 0;

  static async start(work: QueueWork, around: WorkerAround): Promise<BullmqWorker> {
    const { connection, options, places } = around;
    const bullmq = await connection.package();
    const client = await connection.patient();
    return new BullmqWorker(
      work,
      around,
      bullmq,
      (process) =>
        new bullmq.Worker<Envelope, void>(work.queue, process, {
          connection: client,
          prefix: places.prefixOf(work.queue),
          // Stored with each job that it has taken (`processedBy`), for people.
          name: `${hostname()}:${pid}`,
          concurrency: work.concurrency,
          lockDuration: options.lockMs,
          stalledInterval: options.deathCheckMs,
          // A worker may die after it has taken the signal that a job has come, so idle workers look as often as dead
          // ones are looked for.
          drainDelay: options.deathCheckMs / 1_000,
          maxStalledCount: NEVER,
          runRetryDelay: FAULT_PAUSE_MS,
          settings: { backoffStrategy: (tries) => backoffDelay(tries, Math.random(), TRY_PAUSES) },
          ...(work.rateLimit ? { limiter: { max: work.rateLimit.max, duration: work.rateLimit.perMs } } : {}),
        }),
    );
  }

  private constructor(
    work: QueueWork,
    around: WorkerAround,
    bullmq: Package,
    create: (process: (job: BullJob<Envelope>, token?: string) => Promise<void>) => Worker<Envelope, void>,
  ) {
    this.work = work;
    this.#around = around;
    this.#package = bullmq;
    this.#worker = create((job, token = "") => this.#take(job, token));
    this.#worker.on("error", (error) => this.#noteFault(error));
    this.#worker.on("stalled", (jobId) => this.#noteDeath(jobId));
  }

  async ready(): Promise<void> {
    await this.#worker.waitUntilReady();
  }

  /** Takes no more jobs, and resolves when the running ones have ended. */
  async close(): Promise<void> {
    await this.#worker.close();
    // The signal that a job has come may have reached only this worker, just before it left: repeat it for the others.
    await this.#around.places.poke(this.work.queue);
  }

  #noteFault(error: unknown): void {
    const { onFault, options, running } = this.#around;
    const { queue } = this.work;
    const jobId = unrenewedJobOf(error);
    // A job that has just ended releases its lock, and a renewal that was sent earlier may then find no lock.
    if (jobId !== undefined && !running.has(`${queue}/${jobId}`)) return;
    onFault(faultOf(queue, error, options.redact));
  }

  #noteDeath(jobId: string): void {
    const { marks, onFault } = this.#around;
    this.deaths += 1;
    marks.repair(this.work.queue, jobId).catch((error: unknown) => onFault(translated(error)));
  }

  async #take(job: BullJob<Envelope>, token: string): Promise<void> {
    const { running } = this.#around;
    await running.hold(async () => {
      // The job came while the worker was about to stop. A wake is looked at all the same: its agent may need nothing any more.
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
    const { options, running, marks, onFault } = this.#around;
    const { queue } = this.work;
    const { id = "", stalledCounter: deaths } = job;
    const opened = open(queue, id, job.data, options.signer);
    if ("later" in opened && job.attemptsMade + 1 < MAX_TRIES) {
      onFault(new UnsupportedError(`a job of queue "${queue}" is left to another worker: ${opened.later}`));
      throw new Error(opened.later);
    }
    if (!("job" in opened)) {
      this.refused += 1;
      const message = "later" in opened ? opened.later : opened.refused;
      throw this.#dead({ code: "refused", message, deaths });
    }
    const isFirst = job.attemptsStarted <= 1;
    const { cancelled, cause } = isFirst
      ? { cancelled: undefined, cause: undefined }
      : await this.#orLater(job, token, marks.of(queue, id));
    if (cause) return this.#bury(job, token, opened.job, cause);
    if (cancelled !== undefined || (deaths > 0 && this.#ends.has(runOf(job)))) return undefined;
    if (!running.has(`${queue}/${id}`) && !mayDieAgain(opened.job, deaths)) {
      return this.#bury(job, token, opened.job, this.#deathCause(deaths));
    }
    return this.#settle(job, token, opened.job, await this.#run(job, opened.job));
  }

  #run(job: BullJob<Envelope>, work: Job): Promise<JobEnd> {
    const { queue } = this.work;
    return this.#around.running.run(`${queue}/${job.id}`, {
      queue,
      deaths: job.stalledCounter,
      isRepeatable: work.kind === "wake" || work.isRepeatable,
      timeoutMs: work.kind === "wake" ? undefined : work.timeoutMs,
      run: (run) => this.work.run(work, run),
    });
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
    await job.moveToWait(token);
    throw new this.#package.WaitingError();
  }

  async #bury(job: BullJob<Envelope>, token: string, work: Job, cause: DeadCause): Promise<void> {
    const { marks, onDead } = this.#around;
    const told = async (): Promise<void> => {
      await marks.noteCause(this.work.queue, job.id ?? "", cause);
      await onDead(work, cause);
    };
    await this.#orLater(job, token, told());
    throw this.#dead(cause);
  }

  /**
   * Waits for a step that must succeed before the job goes on. If it fails, the job comes back later and no attempt is
   * counted.
   */
  async #orLater<T>(job: BullJob<Envelope>, token: string, step: Promise<T>): Promise<T> {
    try {
      return await step;
    } catch (error) {
      this.#around.onFault(translated(error));
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
      message: `the worker that ran it died, or was not heard of for ${lockMs} ms: ${times}`,
    };
  }
}

/** Identifies one run: a job that was added again after its end is a different one. */
function runOf({ id = "", timestamp }: BullJob<Envelope>): string {
  return `${id}@${timestamp}`;
}
