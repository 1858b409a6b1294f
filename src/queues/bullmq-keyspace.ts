import type { Job as BullJob, JobsOptions, JobState, Queue } from "bullmq";
import { createId } from "../base/index.ts";
import type { AgentKey } from "../state/index.ts";
import { type DeadCause, type DeadCode, type DeadLetter, type QueueCount, WAKE_QUEUE } from "./ports.ts";
import type { CheckedOptions } from "./bullmq-options.ts";
import type { BullmqServer } from "./bullmq-server.ts";
import { MAX_TRIES } from "./checks.ts";
import { type Envelope, open, type Opened, wakeKeyOf } from "./jobs.ts";

/** Approximate number of events that bullmq keeps per queue. Only outside observers read them. */
const EVENTS_KEPT = 100;
/** Number of active jobs that are compared to find the one that has run longest. */
const MOST_ACTIVE = 100;
const WEEK_SECONDS = 7 * 24 * 3_600;
/** Prefix of the ids of jobs that were set aside. */
const SET_ASIDE = "refused";

export function isSetAside(jobId: string): boolean {
  return jobId.startsWith(`${SET_ASIDE}_`);
}

/**
 * The queues as they are stored on their server.
 * Owns: adding, counting and reading jobs. Does not own: running them.
 * 1. Finished jobs leave nothing; the newest dead letters are kept for a week.
 * 2. Jobs are accessed only through BullMQ.
 */
export class BullmqKeyspace {
  readonly #server: BullmqServer;
  readonly #options: CheckedOptions;
  readonly #queues = new Map<string, Promise<Queue>>();
  readonly #used = new Set<string>();
  /** Queues that this process has registered in the list of queues. */
  readonly #registered = new Set<string>();

  constructor(server: BullmqServer, options: CheckedOptions) {
    this.#server = server;
    this.#options = options;
  }

  /** Queues that this process has added to, read or worked on. */
  get used(): readonly string[] {
    return [...this.#used];
  }

  async add(queue: string, data: Envelope, options: JobsOptions): Promise<void> {
    if (!this.#registered.has(queue)) await this.register([queue]);
    await this.run(queue, (place) =>
      place.add("job", this.#server.encoded(data), { ...this.#jobOptions(), ...options }),
    );
  }

  /**
   * Each wake is a separate job. A wake that is added while another one of the agent is active runs after that one; if the other one
   * waits for its next try, it runs at once instead.
   */
  async wake(data: Envelope, agent: AgentKey): Promise<void> {
    const deduplication = { id: wakeKeyOf(agent), keepLastIfActive: true, reschedule: true };
    await this.add(WAKE_QUEUE, data, { jobId: createId("wake"), deduplication });
  }

  /** Registers these queues in the list of queues. */
  async register(queues: readonly string[]): Promise<void> {
    await this.#server.register(queues);
    for (const queue of queues) this.#registered.add(queue);
  }

  async names(): Promise<string[]> {
    return (await this.#server.names()).toSorted();
  }

  /** Parses the content of a stored job. */
  open(queue: string, { id = "", data }: Pick<BullJob<unknown>, "id" | "data">): Opened {
    return open(queue, id, this.#server.decoded(data), this.#options.signer);
  }

  async remove(queue: string, jobId: string): Promise<boolean> {
    return (await this.run(queue, (place) => place.remove(jobId))) === 1;
  }

  async count(queue: string): Promise<Pick<QueueCount, "waiting" | "active" | "delayed" | "dead">> {
    const counts = await this.run(queue, (place) =>
      place.getJobCounts("wait", "prioritized", "active", "delayed", "failed"),
    );
    const of = (...states: string[]): number => states.reduce((sum, state) => sum + (counts[state] ?? 0), 0);
    return {
      waiting: of("wait", "prioritized"),
      active: of("active"),
      delayed: of("delayed"),
      dead: of("failed"),
    };
  }

  /**
   * When the oldest waiting job was added, and when the longest running job was started. Only some of many active jobs are compared. Null
   * also if a job is not readable.
   */
  async ages(queue: string): Promise<Pick<QueueCount, "waitingSince" | "activeSince">> {
    const [waiting, active] = await this.run(queue, (place) =>
      Promise.all([
        place.getJobs(["waiting", "prioritized"], 0, 0, true).catch(unreadable),
        place.getJobs(["active"], 0, MOST_ACTIVE, true).catch(unreadable),
      ]),
    );
    return {
      waitingSince: oldest(waiting.flatMap((job: ListedJob) => job?.timestamp ?? [])),
      activeSince: oldest(active.flatMap((job: ListedJob) => job?.processedOn ?? [])),
    };
  }

  async deadLetters(queue: string, limit: number): Promise<DeadLetter[]> {
    const jobs = await this.run(queue, (place) => place.getFailed(0, limit - 1));
    return jobs.map((job) => this.#letterOf(queue, job));
  }

  /** `undefined` for a job that does not exist or cannot be parsed. */
  async job(queue: string, jobId: string): Promise<BullJob<Envelope> | undefined> {
    return (await this.#read(queue, jobId)).job;
  }

  async stateOf(queue: string, jobId: string): Promise<JobState | "unknown"> {
    return await this.run(queue, (place) => place.getJobState(jobId));
  }

  /** Whether a job with this deduplication id is active, or waits for its first run. */
  async isInHand(queue: string, deduplicationId: string): Promise<boolean> {
    const jobId = await this.run(queue, (place) => place.getDeduplicationJobId(deduplicationId));
    if (jobId === null) return false;
    const job = await this.job(queue, jobId);
    if (!job) return false;
    return job.attemptsStarted === 0 || (await this.stateOf(queue, jobId)) === "active";
  }

  /** Up to `limit` waiting jobs, next to run first, without those that cannot be parsed. */
  async waiting(queue: string, limit: number): Promise<BullJob<Envelope>[]> {
    const ids = await this.run(queue, (place) => place.getRanges(["waiting"], 0, limit - 1, true));
    const jobs = await Promise.all(ids.map((id) => this.job(queue, id)));
    return jobs.filter((job) => job !== undefined);
  }

  /** Adds the data of a job that cannot run under a new id, which becomes a dead letter: the job's own id may belong to a genuine job. */
  async setAside(queue: string, data: unknown): Promise<void> {
    await this.run(queue, (place) => place.add("job", data, { ...this.#jobOptions(), jobId: createId(SET_ASIDE) }));
  }

  /**
   * A worker that takes a job that does not parse fails without releasing it: the job stays locked, counts as stalled, and is taken
   * again. This sets such a job aside, without its data, as soon as its lock has expired.
   */
  async replaceUnreadable(queue: string, jobId: string): Promise<void> {
    const { clock, lockMs, deathCheckMs } = this.#options;
    const end = clock.elapsed() + 2 * lockMs;
    while ((await this.#read(queue, jobId)).isUnreadable) {
      if (await this.remove(queue, jobId)) return this.setAside(queue, null);
      // This runs again the next time that bullmq reports the job as stalled.
      if (clock.elapsed() > end) return;
      await clock.sleep(Math.ceil(deathCheckMs / 5));
    }
  }

  async #read(queue: string, jobId: string): Promise<{ job: BullJob<Envelope> | undefined; isUnreadable: boolean }> {
    return await this.run(queue, async (place) => {
      try {
        return { job: await place.getJob(jobId), isUnreadable: false };
      } catch (error) {
        if (error instanceof SyntaxError) return { job: undefined, isUnreadable: true };
        throw error;
      }
    });
  }

  async run<T>(queue: string, command: (place: Queue) => Promise<T>): Promise<T> {
    // Load the package first, so that loading does not count towards the timeouts of commands.
    await this.#server.package();
    return this.#server.run(async () => command(await this.#place(queue)));
  }

  async close(): Promise<void> {
    const closed = [...this.#queues.values()].map(async (queue) => (await queue).close());
    await Promise.allSettled(closed);
  }

  #place(queue: string): Promise<Queue> {
    const known = this.#queues.get(queue);
    if (known) return known;
    const place = this.#build(queue);
    this.#queues.set(queue, place);
    this.#used.add(queue);
    place.catch(() => this.#queues.delete(queue));
    return place;
  }

  async #build(queue: string): Promise<Queue> {
    return await this.#server.queue(queue, { eventsKept: EVENTS_KEPT });
  }

  #jobOptions(): JobsOptions {
    return {
      attempts: MAX_TRIES,
      backoff: { type: "custom" },
      removeOnComplete: true,
      removeOnFail: { count: this.#options.deadLettersKept, age: WEEK_SECONDS },
      stackTraceLimit: 0,
      keepLogs: 0,
    };
  }

  #letterOf(queue: string, job: BullJob<Envelope>): DeadLetter {
    const jobId = job.id ?? "";
    const opened = this.open(queue, job);
    return {
      queue,
      jobId,
      job: "job" in opened ? opened.job : null,
      cause: causeOf(job),
      at: job.finishedOn ?? job.timestamp,
    };
  }
}

/** `undefined` if the job was removed while the list was read. */
type ListedJob = BullJob<Envelope> | undefined;

/** Another client of the server may have written a value that does not parse as a job; a worker refuses it when it takes it. */
function unreadable(error: unknown): never[] {
  if (error instanceof SyntaxError) return [];
  throw error;
}

function oldest(times: readonly number[]): number | null {
  return times.length === 0 ? null : Math.min(...times);
}

const codes: Readonly<Record<DeadCode, true>> = {
  worker_died: true,
  failed: true,
  timed_out: true,
  stopped: true,
  refused: true,
};

/** The text that is stored with the dead letter; `causeOf` parses it. */
export function textOfCause({ code, message }: DeadCause): string {
  // Postgres stores no NUL.
  return `${code}: ${message.toWellFormed().replaceAll("\0", "\uFFFD")}`;
}

function causeOf({ failedReason, stalledCounter: deaths }: BullJob<Envelope>): DeadCause {
  const end = failedReason.indexOf(": ");
  const code = failedReason.slice(0, Math.max(0, end));
  if (Object.hasOwn(codes, code)) return { code: code as DeadCode, message: failedReason.slice(end + 2), deaths };
  return { code: "failed", message: failedReason, deaths };
}
