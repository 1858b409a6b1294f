import type { Clock } from "../../base/index.ts";
import type { Stores } from "../../stores/index.ts";
import type { HeldLease } from "../residence/passivation.ts";

export interface HeartbeatOptions {
  readonly stores: Pick<Stores, "holder">;
  readonly clock: Clock;
  /** Writes one heartbeat. */
  readonly giveSign: () => Promise<void>;
  readonly leaseMs: number;
  /** The leases that this process has. */
  readonly leases: () => readonly HeldLease[];
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
  /** Whether a silence was too long, and the agents have not been looked at since. */
  #wasSilent = false;
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
    const { clock, giveSign, leaseMs, leases, onBeat } = this.#options;
    const sentAt = clock.elapsed();
    await giveSign();
    // It is not known when the heartbeat was stored; until then the process may have seemed dead.
    if (clock.elapsed() - this.#lastSign > leaseMs) this.#wasSilent = true;
    this.#lastSign = sentAt;
    if (!this.#wasSilent) return;
    this.#wasSilent = false;
    try {
      await Promise.all(leases().map((lease) => this.#look(lease)));
    } catch (error) {
      this.#wasSilent = true;
      throw error;
    }
    onBeat();
  }

  async #look(lease: HeldLease): Promise<void> {
    const { key, epoch } = lease;
    const holder = await this.#options.stores.holder(key);
    if (holder?.epoch === epoch) return;
    lease.discard(`agent ${key.agentId} was taken over while this process gave no sign of life`);
  }
}
