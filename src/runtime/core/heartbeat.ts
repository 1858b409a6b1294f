import type { Clock } from "../../base/index.ts";
import type { ProcessIdentity, Stores } from "../../stores/index.ts";
import { LeaseLostError } from "../../errors/index.ts";
import type { Activation } from "../agent/activation.ts";

export interface HeartbeatOptions {
  readonly stores: Stores;
  /** Its `elapsed()` is the stores' steady time. */
  readonly clock: StoreClock;
  readonly process: ProcessIdentity;
  readonly leaseMs: number;
  /** All that live in this process. */
  readonly live: () => readonly Activation[];
  /** What is to be looked at with every beat, and once more when leases may have been lost. */
  readonly onBeat: () => void;
}

/**
 * The signs of life of one process.
 * Owns: when they are given, and when the last one was. Does not own: the leases, who lives here.
 *
 * Invariant: who was silent for longer than a lease gives up what others have taken meanwhile, whether or not it has anything
 * to write: an agent that only waits would never be told.
 */
export class Heartbeat {
  readonly #options: HeartbeatOptions;
  #lastSign: number;
  #cancel: (() => void) | undefined;

  constructor(options: HeartbeatOptions) {
    this.#options = options;
    this.#lastSign = options.clock.elapsed();
  }

  start(): void {
    const { clock, leaseMs, onBeat } = this.#options;
    this.#cancel = clock.setDelay(Math.ceil(leaseMs / 3), () => {
      this.#sign().catch((error: unknown) => {
        process.emitWarning(`the heartbeat could not be written: ${String(error)}`);
      });
      onBeat();
      this.start();
    });
  }

  stop(): void {
    this.#cancel?.();
  }

  async #sign(): Promise<void> {
    const { stores, clock, process: self, leaseMs, live, onBeat } = this.#options;
    const sentAt = clock.elapsed();
    await clock.giveSign(stores, self);
    // When it was stored in between nobody knows: before that the process may have seemed dead.
    const wasSilent = clock.elapsed() - this.#lastSign > leaseMs;
    this.#lastSign = sentAt;
    if (!wasSilent) return;
    await Promise.all(live().map((activation) => this.#look(activation)));
    onBeat();
  }

  async #look(activation: Activation): Promise<void> {
    const { key, epoch } = activation;
    const holder = await this.#options.stores.holder(key);
    if (holder?.epoch === epoch) return;
    activation.discard(
      new LeaseLostError(`agent ${key.agentId} was taken over while this process gave no sign of life`),
    );
  }
}

/** A process' clock whose `elapsed()` is the steady time of the stores, once the process is registered with them. */
export class StoreClock implements Clock {
  readonly #clock: Clock;
  #offset = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async register(stores: Stores, process: ProcessIdentity): Promise<void> {
    this.#offset = await stores.registerProcess(process, this.#clock.now(), this.#clock.elapsed());
  }

  /** A sign of life; a process that gave none for so long that it was forgotten begins again. */
  async giveSign(stores: Stores, process: ProcessIdentity): Promise<void> {
    if (!(await stores.heartbeat(process.processId, this.elapsed()))) await this.register(stores, process);
  }

  now(): number {
    return this.#clock.now();
  }

  elapsed(): number {
    return this.#clock.elapsed() + this.#offset;
  }

  setTimer(at: number, callback: () => void): () => void {
    return this.#clock.setTimer(at, callback);
  }

  setDelay(ms: number, callback: () => void): () => void {
    return this.#clock.setDelay(ms, callback);
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return this.#clock.sleep(ms, signal);
  }
}
