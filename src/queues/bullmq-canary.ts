import { createId, Waiters } from "../base/index.ts";
import { within } from "../redis/index.ts";
import type { Queue, Worker } from "bullmq";
import type { BullmqConnection } from "./bullmq-connection.ts";
import type { BullmqPlaces } from "./bullmq-places.ts";

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
