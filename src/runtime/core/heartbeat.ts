import { LeaseLostError } from "../../errors/index.ts";
import type { ProcessIdentity, Stores } from "../../stores/index.ts";
import type { Activation } from "../agent/activation.ts";
import type { StoreClock } from "./store-clock.ts";

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
