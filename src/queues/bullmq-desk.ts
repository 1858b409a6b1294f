import { createId, Waiters, harmless } from "../base/index.ts";
import { within } from "../redis/index.ts";
import type { Queue, Worker } from "bullmq";
import { BullmqConnection, translated, type CheckedOptions } from "./bullmq-connection.ts";
import { BullmqPlaces } from "./bullmq-places.ts";
import { InvariantError, type TroupeError } from "../errors/index.ts";
import { BullmqMarks } from "./bullmq-marks.ts";
import { BullmqPresence } from "./bullmq-presence.ts";
import { BullmqWorker } from "./bullmq-worker.ts";
import { checkedWork, checkWhole, CLOSE_DRAIN_MS, DEFAULT_HEALTH_MS } from "./checks.ts";
import { type DrainOutcome, type QueueCount, type QueueHealth, WAKE_QUEUE, type WorkOptions } from "./ports.ts";
import { RunningJobs } from "./running-jobs.ts";

/** How long a worker with room may leave work lying before something is wrong with it, in milliseconds. */
const LYING_MS = 1_000;
/** How long letting go of Redis may take, in milliseconds. */
const PARTING_MS = 1_000;

/**
 * This process's part in the queues.
 * Owns: its workers, from the first to the last. Does not own: what they do with a job.
 */
export class BullmqDesk {
  readonly places: BullmqPlaces;
  readonly marks: BullmqMarks;
  readonly presence: BullmqPresence;
  readonly #options: CheckedOptions;
  readonly #connection: BullmqConnection;
  readonly #running: RunningJobs;
  readonly #canary: BullmqCanary;
  readonly #workers = new Map<string, BullmqWorker>();
  #isAtWork = false;
  #drained: Promise<DrainOutcome> | undefined;
  #closed: Promise<void> | undefined;

  constructor(options: CheckedOptions) {
    const { clock, graceMs, redact } = options;
    this.#options = options;
    this.#connection = new BullmqConnection(options);
    this.places = new BullmqPlaces(this.#connection, options);
    this.marks = new BullmqMarks(this.#connection, this.places);
    this.presence = new BullmqPresence(options, this.#connection, this.places);
    this.#running = new RunningJobs({ clock, graceMs, redact });
    this.#canary = new BullmqCanary(this.#connection, this.places);
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
      connection: this.#connection,
      places: this.places,
      marks: this.marks,
      running: this.#running,
      onDead,
      onFault,
    };
    // Whether Redis is there, and may be used, is to be known before anything waits for it.
    try {
      for (const { queue } of works) await this.places.count(queue);
    } catch (error) {
      this.#isAtWork = false;
      throw error;
    }
    for (const work of works) this.#workers.set(work.queue, await BullmqWorker.start(work, around));
    // One that is not ready in time, since Redis has just gone, begins when it is back.
    const ready = Promise.all([...this.#workers.values()].map((worker) => worker.ready()));
    await within(this.#options.timeoutMs, ready).catch((error: unknown) => onFault(translated(error)));
    const entered = this.presence.enter([...this.#workers.keys()], onFault);
    await within(this.#options.timeoutMs, entered).catch((error: unknown) => onFault(translated(error)));
    this.#watchCancels();
  }

  async counts(queues: readonly string[] = this.places.used): Promise<QueueCount[]> {
    return await Promise.all(
      queues.map(async (queue) => {
        const { deaths = 0, refused = 0 } = this.#workers.get(queue) ?? {};
        return { queue, ...(await this.places.count(queue)), deaths, refused };
      }),
    );
  }

  async health({ timeoutMs = DEFAULT_HEALTH_MS }: { timeoutMs?: number | undefined } = {}): Promise<QueueHealth> {
    checkWhole("timeoutMs", timeoutMs, 1, 2 ** 31 - 1);
    const problems: string[] = [];
    let roundTripMs: number | null = null;
    if (this.#closed) problems.push("the queues were closed");
    else if (this.#running.isLeaving) problems.push("the worker leaves");
    else {
      const flight = this.#canary.fly(timeoutMs);
      const looked = within(timeoutMs, this.#lying());
      roundTripMs = await flight.catch((error: unknown) => {
        problems.push(`the canary did not come back within ${timeoutMs} ms (${translated(error).message})`);
        return null;
      });
      problems.push(...(await looked.catch(() => ["Redis does not answer the queues"])));
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
    // What cannot be taken out of Redis now is believed dead there soon.
    const left = this.presence.leave().catch(() => undefined);
    const closing = Promise.all([left, ...[...this.#workers.values()].map((worker) => worker.close())]);
    closing.catch(() => undefined);
    const outcome = await drained;
    // What has ended is written down in Redis, as far as there is time, and Redis.
    const patience = Math.min(end - performance.now(), this.#options.timeoutMs);
    if (outcome.left === 0) await within(patience, closing).catch(() => undefined);
    return outcome;
  }

  async #close(): Promise<void> {
    await this.drain(CLOSE_DRAIN_MS);
    const parting = Promise.all([this.#canary.close(), this.places.close()]);
    await within(PARTING_MS, parting).catch(() => undefined);
    await this.#connection.close();
  }

  /** Queues of this process in which jobs wait although there is room, and where nothing is begun for a while. */
  async #lying(): Promise<string[]> {
    const suspects = await this.#leftLying([...this.#workers.values()]);
    if (suspects.length === 0) return [];
    const begun = suspects.map((worker) => worker.begun);
    await this.#options.clock.sleep(LYING_MS);
    const idle = suspects.filter((worker, place) => worker.begun === begun[place]);
    const lying = await this.#leftLying(idle);
    return lying.map(({ work }) => `jobs wait in queue "${work.queue}", and none is begun here though there is room`);
  }

  async #leftLying(workers: readonly BullmqWorker[]): Promise<BullmqWorker[]> {
    const free = workers.filter(({ work, active }) => !work.rateLimit && active < work.concurrency);
    const counts = await Promise.all(free.map(({ work }) => this.places.count(work.queue)));
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
    const byQueue = Map.groupBy(this.#running.ids(), (name) => name.slice(0, name.indexOf("/")));
    for (const [queue, names] of byQueue) {
      if (queue === WAKE_QUEUE) continue;
      const jobIds = names.map((name) => name.slice(queue.length + 1));
      const reasons = await this.marks.cancelled(queue, jobIds);
      for (const [jobId, reason] of reasons) this.#running.cancel(`${queue}/${jobId}`, reason);
    }
  }
}

/** Keys of a canary whose process has died go away after this time, in milliseconds. */
const LEFT_MS = 3_600_000;

/**
 * A job that goes round, to this very process and to no other, as all jobs do: added, waited for, taken, ended.
 * Owns: a queue of its own, of which nothing stays.
 */
export class BullmqCanary {
  readonly #connection: BullmqConnection;
  readonly #places: BullmqPlaces;
  readonly #name = `~canary-${createId()}`;
  readonly #flying = new Waiters<string>();
  #cage: Promise<Queue> | undefined;
  /** There before the cage is: Redis may be away, or let nobody in. */
  #worker: Worker | undefined;

  constructor(connection: BullmqConnection, places: BullmqPlaces) {
    this.#connection = connection;
    this.#places = places;
  }

  /** How long it took, in milliseconds. Rejects when it did not come back in time. */
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
    // At once: a worker that does not know that it is to end would ask for a new connection for ever.
    await this.#worker?.close();
    const queue = await this.#cage?.catch(() => undefined);
    await queue?.obliterate({ force: true });
    await queue?.close();
  }

  async #flight(id: string, landed: Promise<void>): Promise<void> {
    this.#cage ??= this.#build();
    const queue = await this.#cage.catch((error: unknown) => {
      this.#cage = undefined;
      throw error;
    });
    await queue.add("canary", {}, { jobId: id, removeOnComplete: true, removeOnFail: true });
    await landed;
    for (const part of ["meta", "id", "events", "marker"]) {
      await this.#connection.run((client) => client.pexpire(this.#places.keyOf(this.#name, part), LEFT_MS));
    }
  }

  async #build(): Promise<Queue> {
    const { Queue, Worker } = await this.#connection.package();
    const connection = await this.#connection.patient();
    const options = { connection, prefix: this.#places.prefixOf(this.#name) };
    const queue = new Queue(this.#name, { ...options, streams: { events: { maxLen: 10 } } });
    const land = async ({ id = "" }: { id?: string | undefined }): Promise<void> => this.#flying.resolve(id);
    const worker = new Worker(this.#name, land, { ...options, runRetryDelay: 1_000 });
    this.#worker = worker;
    queue.on("error", () => undefined);
    worker.on("error", () => undefined);
    try {
      await worker.waitUntilReady();
    } catch (error) {
      // The next flight has a cage of its own.
      worker.close(true).catch(() => undefined);
      throw error;
    }
    return queue;
  }
}
