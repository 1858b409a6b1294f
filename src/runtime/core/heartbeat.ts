import type { Clock } from "../../base/index.ts";
import type { Stores } from "../../stores/index.ts";
import type { HeldLease } from "../placement/passivation.ts";

/** A process with nothing to keep up gives a sign this often, so that the stores do not forget it. In milliseconds. */
const REMEMBERED_MS = 60 * 60_000;

export interface HeartbeatOptions {
  readonly stores: Pick<Stores, "holder">;
  readonly clock: Clock;
  /** Writes one heartbeat. */
  readonly giveSign: () => Promise<void>;
  readonly leaseMs: number;
  /** The leases that this process has. */
  readonly leases: () => readonly HeldLease[];
  /** Whether anything here would be taken over by other processes if this one gave no sign. */
  readonly isAtWork: () => boolean;
  /** Called with every beat, and once more when leases may have been lost. */
  readonly onBeat: () => void;
}

/**
 * Writes the heartbeats of one process.
 * Owns: when they are written, and when the last one was. Does not own: the leases, or which agents live here.
 *
 * Invariants
 * 1. While the process is at work, it writes one heartbeat in a third of a lease. Otherwise it writes one an hour: agents at
 *    rest need no living owner.
 * 2. `present` resolves when the process counts as alive for at least half a lease, so that what it begins then is not taken
 *    over.
 * 3. After a silence longer than a lease, the process gives up the agents that others have taken, even those that have
 *    nothing to write. An agent that only waits would not notice otherwise.
 */
export class Heartbeat {
  readonly #options: HeartbeatOptions;
  #lastSign: number;
  #signing: Promise<void> | undefined;
  /** Whether a silence was too long, and the agents have not been looked at since. */
  #wasSilent = false;
  /** Whether the last beat was left out because the process was not at work. */
  #isResting = false;
  #cancel: (() => void) | undefined;

  constructor(options: HeartbeatOptions) {
    this.#options = options;
    this.#lastSign = options.clock.elapsed();
  }

  start(): void {
    const { clock, leaseMs, onBeat } = this.#options;
    this.#cancel = clock.setDelay(Math.ceil(leaseMs / 3), () => {
      this.#isResting = !this.#options.isAtWork() && clock.elapsed() - this.#lastSign < REMEMBERED_MS;
      if (!this.#isResting) this.#sign().catch(warn);
      onBeat();
      this.start();
    });
  }

  stop(): void {
    this.#cancel?.();
  }

  /** Call before an agent is activated or a job begun. Rejects if the stores do not take the heartbeat that is due. */
  async present(): Promise<void> {
    const { clock, leaseMs } = this.#options;
    if (clock.elapsed() - this.#lastSign > leaseMs / 2) await this.#sign();
  }

  #sign(): Promise<void> {
    this.#signing ??= this.#signOnce().finally(() => {
      this.#signing = undefined;
    });
    return this.#signing;
  }

  async #signOnce(): Promise<void> {
    const { clock, giveSign, leaseMs, leases, onBeat } = this.#options;
    const sentAt = clock.elapsed();
    await giveSign();
    // It is not known when the heartbeat was stored; until then the process may have seemed dead.
    if (!this.#isResting && clock.elapsed() - this.#lastSign > leaseMs) this.#wasSilent = true;
    this.#isResting = false;
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

function warn(error: unknown): void {
  process.emitWarning(`the heartbeat could not be written: ${String(error)}`);
}
