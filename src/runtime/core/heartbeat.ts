import type { Clock } from "../../base/index.ts";
import type { Stores } from "../../stores/index.ts";
import type { HeldLease } from "../placement/passivation.ts";

/** How often an idle process writes a heartbeat, so that the stores do not forget it, in milliseconds. */
const REMEMBERED_MS = 60 * 60_000;

export interface HeartbeatOptions {
  readonly stores: Pick<Stores, "holder">;
  readonly clock: Clock;
  /** Writes one heartbeat. */
  readonly giveSign: () => Promise<void>;
  readonly leaseMs: number;
  /** The leases that this process holds. */
  readonly leases: () => readonly HeldLease[];
  /** Whether other processes would take over work of this process if it stopped writing heartbeats. */
  readonly isAtWork: () => boolean;
  /** Called with every beat, and once more when leases may have been lost. */
  readonly onBeat: () => void;
}

/**
 * Writes the heartbeats of one process.
 * Owns: when they are written, and when the last one was. Does not own: the leases, or which agents live here.
 *
 * Invariants
 * 1. While the process is at work, it writes a heartbeat every third of a lease. Otherwise it writes one per hour: agents at rest
 *    need no living owner.
 * 2. `present` resolves when the process counts as alive for at least half a lease, so that work started then is not taken over.
 * 3. After a gap between heartbeats longer than a lease, the process gives up the agents that others have taken over, including
 *    those that have nothing to write: an agent that only waits would not notice otherwise.
 */
export class Heartbeat {
  readonly #options: HeartbeatOptions;
  #lastSign: number;
  #signing: Promise<void> | undefined;
  /** Whether a gap was too long, and the agents have not been checked since. */
  #wasSilent = false;
  /** Whether the last heartbeat was skipped because the process was not at work. */
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

  /** Call before an agent is activated or a job is started. Rejects if the stores do not accept a heartbeat that is due. */
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
    // When the heartbeat was stored is unknown; until then the process may have been considered dead.
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
    lease.discard(`agent ${key.agentId} was taken over while this process wrote no heartbeat`);
  }
}

function warn(error: unknown): void {
  process.emitWarning(`the heartbeat could not be written: ${String(error)}`);
}
