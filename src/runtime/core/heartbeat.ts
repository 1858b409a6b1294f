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
  /** All agents that live in this process. */
  readonly live: () => readonly Activation[];
  /** Called with every beat, and once more when leases may have been lost. */
  readonly onBeat: () => void;
}

/**
 * Writes the heartbeats of one process.
 * Owns: when they are written, and when the last one was. Does not own: the leases, or which agents live here.
 *
 * Invariant: after a silence longer than a lease, the process gives up the agents that others have taken, even those
 * that have nothing to write. An agent that only waits would not notice otherwise.
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
    // It is not known when the heartbeat was stored; until then the process may have seemed dead.
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

/** A process's clock whose `elapsed()` is the steady time of the stores, once the process is registered with them. */
export class StoreClock implements Clock {
  readonly #clock: Clock;
  #offset = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async register(stores: Stores, process: ProcessIdentity): Promise<void> {
    this.#offset = await stores.registerProcess(process, this.#clock.now(), this.#clock.elapsed());
  }

  /** Writes a heartbeat; a process that was forgotten after a long silence is registered again. */
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
