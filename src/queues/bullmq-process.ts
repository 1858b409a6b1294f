import { createId, Waiters, harmless } from "../base/index.ts";
import { within } from "../redis/index.ts";
import type { Queue, Worker } from "bullmq";
import { type CheckedOptions, serverOf } from "./bullmq-options.ts";
import { BullmqKeyspace } from "./bullmq-keyspace.ts";
import type { BullmqServer } from "./bullmq-server.ts";
import { InvariantError, type TroupeError } from "../errors/index.ts";
import { BullmqCancellations } from "./bullmq-cancellations.ts";
import { BullmqPresence } from "./bullmq-presence.ts";
import { BullmqWorker } from "./bullmq-worker.ts";
import { checkedWork, checkWhole, CLOSE_DRAIN_MS, DEFAULT_HEALTH_MS } from "./checks.ts";
import { type DrainOutcome, type QueueCount, type QueueHealth, WAKE_QUEUE, type WorkOptions } from "./ports.ts";
import { RunningJobs } from "./running-jobs.ts";

/** If jobs wait longer than this although a worker has free slots, `health` reports a problem. In milliseconds. */
const LYING_MS = 1_000;
/** How long closing the connections may take, in milliseconds. */
const PARTING_MS = 1_000;

/**
 * The queues as used by this process.
 * Owns: its workers, from start to close. Does not own: how the workers handle a job.
 */
export class BullmqProcess {
  readonly keyspace: BullmqKeyspace;
  readonly cancellations: BullmqCancellations;
  readonly presence: BullmqPresence;
  readonly #options: CheckedOptions;
  readonly #server: BullmqServer;
  readonly #running: RunningJobs;
  readonly #canary: BullmqCanary;
  readonly #workers = new Map<string, BullmqWorker>();
  #isAtWork = false;
  #drained: Promise<DrainOutcome> | undefined;
  #closed: Promise<void> | undefined;

  constructor(options: CheckedOptions) {
    const { clock, graceMs, redact } = options;
    this.#options = options;
    this.#server = serverOf(options);
    this.keyspace = new BullmqKeyspace(this.#server, options);
    this.cancellations = new BullmqCancellations(this.#server, this.keyspace);
    this.presence = new BullmqPresence(options, this.#server, this.keyspace);
    this.#running = new RunningJobs({ clock, graceMs, redact });
    this.#canary = new BullmqCanary(this.#server);
  }

  async work(workOptions: WorkOptions): Promise<void> {
    if (this.#isAtWork || this.#running.isLeaving) {
      throw new InvariantError("work() was called twice, or after drain()");
    }
    const works = checkedWork(workOptions);
    this.#isAtWork = true;
    const { onDead } = workOptions;
    const onFault = harmless("onFault", (fault: TroupeError) => workOptions.onFault?.(fault));
    const around = {
      options: this.#options,
      server: this.#server,
      keyspace: this.keyspace,
      cancellations: this.cancellations,
      presence: this.presence,
      running: this.#running,
      onDead,
      onFault,
    };
    // Check first that Redis is reachable and usable, because everything below waits for it.
    try {
      for (const { queue } of works) await this.keyspace.count(queue);
    } catch (error) {
      this.#isAtWork = false;
      throw error;
    }
    for (const work of works) this.#workers.set(work.queue, await BullmqWorker.start(work, around));
    // If a worker is not ready in time, because Redis has just become unreachable, it starts once Redis is back.
    const ready = Promise.all([...this.#workers.values()].map((worker) => worker.ready()));
    await within(this.#options.timeoutMs, ready).catch((error: unknown) => onFault(this.#server.translated(error)));
    const entered = this.presence.enter([...this.#workers.keys()], onFault);
    await within(this.#options.timeoutMs, entered).catch((error: unknown) => onFault(this.#server.translated(error)));
    this.#watchCancels();
  }

  async counts(queues: readonly string[] = this.keyspace.used): Promise<QueueCount[]> {
    return await Promise.all(
      queues.map(async (queue) => {
        const counted = await this.keyspace.count(queue);
        // Read together with the counts, before the next request to Redis.
        const { deaths = 0, refused = 0 } = this.#workers.get(queue) ?? {};
        const isIdle = counted.waiting + counted.active === 0;
        const ages = isIdle ? { waitingSince: null, activeSince: null } : await this.keyspace.ages(queue);
        return { queue, ...counted, ...ages, deaths, refused };
      }),
    );
  }

  async health({ timeoutMs = DEFAULT_HEALTH_MS }: { timeoutMs?: number | undefined } = {}): Promise<QueueHealth> {
    checkWhole("timeoutMs", timeoutMs, 1, 2 ** 31 - 1);
    const problems: string[] = [];
    let roundTripMs: number | null = null;
    if (this.#closed) problems.push("the queues are closed");
    else if (this.#running.isLeaving) problems.push("the worker leaves");
    else {
      const flight = this.#canary.fly(timeoutMs);
      const looked = within(timeoutMs, this.#lying());
      roundTripMs = await flight.catch((error: unknown) => {
        problems.push(
          `the canary did not come back within ${timeoutMs} ms (${this.#server.translated(error).message})`,
        );
        return null;
      });
      problems.push(...(await looked.catch(() => [`${this.#server.name} does not answer the queues`])));
    }
    return { isHealthy: problems.length === 0, roundTripMs, problems };
  }

  drain(timeoutMs: number): Promise<DrainOutcome> {
    this.#drained ??= this.#drain(timeoutMs);
    return this.#drained;
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #drain(timeoutMs: number): Promise<DrainOutcome> {
    const end = performance.now() + timeoutMs;
    const drained = this.#running.drain(timeoutMs);
    // If the entry cannot be removed from Redis now, it soon expires.
    const left = this.presence.leave().catch(() => undefined);
    const closing = Promise.all([left, ...[...this.#workers.values()].map((worker) => worker.close())]);
    closing.catch(() => undefined);
    const outcome = await drained;
    // Wait until finished jobs are recorded in Redis, while there is time and Redis answers.
    const patience = Math.min(end - performance.now(), this.#options.timeoutMs);
    if (outcome.left === 0) await within(patience, closing).catch(() => undefined);
    return outcome;
  }

  async #close(): Promise<void> {
    await this.drain(CLOSE_DRAIN_MS);
    const parting = Promise.all([this.#canary.close(), this.keyspace.close()]);
    await within(PARTING_MS, parting).catch(() => undefined);
    await this.#server.close();
  }

  /** Reports queues of this process in which jobs wait although there are free slots and no job has started for a while. */
  async #lying(): Promise<string[]> {
    const suspects = await this.#leftLying([...this.#workers.values()]);
    if (suspects.length === 0) return [];
    const begun = suspects.map((worker) => worker.begun);
    await this.#options.clock.sleep(LYING_MS);
    const idle = suspects.filter((worker, place) => worker.begun === begun[place]);
    const lying = await this.#leftLying(idle);
    return lying.map(
      ({ work }) => `jobs wait in queue "${work.queue}", and this process starts none although it has free slots`,
    );
  }

  async #leftLying(workers: readonly BullmqWorker[]): Promise<BullmqWorker[]> {
    const free = workers.filter(({ work, active }) => !work.rateLimit && active < work.concurrency);
    const counts = await Promise.all(free.map(({ work }) => this.keyspace.count(work.queue)));
    return free.filter((_worker, place) => (counts[place]?.waiting ?? 0) > 0);
  }

  #watchCancels(): void {
    if (this.#closed) return;
    this.#options.clock.setDelay(this.#options.cancelCheckMs, () => {
      this.#lookForCancels()
        .catch(() => undefined)
        .finally(() => this.#watchCancels());
    });
  }

  async #lookForCancels(): Promise<void> {
    for (const [queue, worker] of this.#workers) if (queue !== WAKE_QUEUE) await worker.lookForCancels();
  }
}

/** A canary queue of a dead process is removed this long after its last canary, in milliseconds. */
const LEFT_MS = 3_600_000;
const EVENTS_KEPT = 10;

/**
 * A test job that only this process takes. It goes through all states of a job: added, waiting, active, finished.
 * Owns: a queue for this job alone, which it removes completely. Other processes remove the queues of processes that died.
 */
export class BullmqCanary {
  readonly #server: BullmqServer;
  readonly #name = `~canary-${createId()}`;
  readonly #flying = new Waiters<string>();
  #cage: Promise<Queue> | undefined;
  /** Set before the queue, because Redis may be unreachable or refuse the login. */
  #worker: Worker | undefined;

  constructor(server: BullmqServer) {
    this.#server = server;
  }

  /** Resolves to the round trip in milliseconds. Rejects if the job did not return in time. */
  async fly(timeoutMs: number): Promise<number> {
    const from = performance.now();
    const id = createId("canary");
    const landed = this.#flying.wait(id);
    try {
      await within(timeoutMs, this.#flight(id, landed));
      return performance.now() - from;
    } finally {
      this.#flying.forget(id);
    }
  }

  async close(): Promise<void> {
    // Close the worker first: otherwise it keeps reconnecting forever.
    await this.#worker?.close();
    const queue = await this.#cage?.catch(() => undefined);
    if (!queue) return;
    await queue.obliterate({ force: true });
    await queue.close();
    await this.#server.forgetCanary(this.#name);
  }

  async #flight(id: string, landed: Promise<void>): Promise<void> {
    this.#cage ??= this.#build();
    const queue = await this.#cage.catch((error: unknown) => {
      this.#cage = undefined;
      throw error;
    });
    await this.#server.noteCanary(this.#name, Date.now());
    await queue.add("canary", {}, { jobId: id, removeOnComplete: true, removeOnFail: true });
    await landed;
    await this.#removeAbandoned();
  }

  async #removeAbandoned(): Promise<void> {
    for (const name of await this.#server.oldCanaries(Date.now() - LEFT_MS)) {
      const queue = await this.#server.queue(name, { eventsKept: EVENTS_KEPT, isPatient: true });
      await queue.obliterate({ force: true });
      await queue.close();
      await this.#server.forgetCanary(name);
    }
  }

  async #build(): Promise<Queue> {
    const queue = await this.#server.queue(this.#name, { eventsKept: EVENTS_KEPT, isPatient: true });
    const land = async ({ id = "" }: { id?: string | undefined }): Promise<void> => this.#flying.resolve(id);
    const worker = await this.#server.worker(this.#name, land, { runRetryDelay: 1_000, onError: () => undefined });
    this.#worker = worker;
    try {
      await worker.waitUntilReady();
    } catch (error) {
      // The next canary creates a new queue and worker.
      worker.close(true).catch(() => undefined);
      throw error;
    }
    return queue;
  }
}
