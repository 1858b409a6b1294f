import { createId } from "../base/index.ts";
import type { CheckedOptions } from "./bullmq-options.ts";
import type { BullmqKeyspace } from "./bullmq-keyspace.ts";
import type { BullmqServer } from "./bullmq-server.ts";
import type { WorkOptions } from "./ports.ts";

/**
 * The registered workers of each queue.
 * Owns: the entries of this process. Counting connections would not suffice: a frozen process keeps its connection, a cluster node sees
 * only its own connections, and listing them needs a permission that workers do not always have.
 * 1. An entry expires after `lockMs`; a living process renews it three times in that period.
 */
export class BullmqPresence {
  readonly #options: CheckedOptions;
  readonly #server: BullmqServer;
  readonly #keyspace: BullmqKeyspace;
  readonly #id = createId("worker");
  #queues: readonly string[] = [];
  #stopWaiting: () => void = () => undefined;
  #hasLeft = false;

  constructor(options: CheckedOptions, server: BullmqServer, keyspace: BullmqKeyspace) {
    this.#options = options;
    this.#server = server;
    this.#keyspace = keyspace;
  }

  /** Registers this process as a worker of these queues, until `leave()`. */
  async enter(queues: readonly string[], onFault: NonNullable<WorkOptions["onFault"]>): Promise<void> {
    this.#queues = queues;
    await this.#beat().catch((error: unknown) => onFault(this.#server.translated(error)));
    this.#goOn(onFault);
  }

  async leave(): Promise<void> {
    this.#hasLeft = true;
    this.#stopWaiting();
    await Promise.all(this.#queues.map((queue) => this.#server.leave(queue, this.#id)));
  }

  async count(queue: string): Promise<number> {
    return await this.#server.workers(queue);
  }

  #goOn(onFault: NonNullable<WorkOptions["onFault"]>): void {
    if (this.#hasLeft) return;
    const { clock, deathCheckMs, lockMs } = this.#options;
    this.#stopWaiting = clock.setDelay(Math.min(deathCheckMs, Math.floor(lockMs / 3)), () => {
      this.#beat()
        .catch((error: unknown) => onFault(this.#server.translated(error)))
        .finally(() => this.#goOn(onFault));
    });
  }

  async #beat(): Promise<void> {
    const { lockMs } = this.#options;
    await this.#keyspace.register(this.#queues);
    const entered = this.#queues.map((queue) => this.#server.enter(queue, this.#id, lockMs, () => this.#hasLeft));
    await Promise.all(entered);
  }
}
