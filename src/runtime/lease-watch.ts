import { LeaseLostError } from "../errors/index.ts";
import type { Stores } from "../stores/index.ts";
import type { Activation } from "./activation.ts";

/**
 * Notices that this process may have been taken for dead.
 * Owns: when its last sign of life was. Does not own: the leases, who lives here.
 *
 * Invariant: who was silent for longer than a lease gives up what others have taken meanwhile, whether or not it has anything
 * to write: an agent that only waits would never be told.
 */
export class LeaseWatch {
  readonly #stores: Pick<Stores, "holder">;
  readonly #leaseMs: number;
  #lastSign: number;

  /** `now` and all further moments: the stores' steady time. */
  constructor(stores: Pick<Stores, "holder">, leaseMs: number, now: number) {
    this.#stores = stores;
    this.#leaseMs = leaseMs;
    this.#lastSign = now;
  }

  /**
   * A sign of life was stored that says `sentAt`, and the answer came at `answeredAt`: nobody knows when in between. True
   * when the process may have seemed dead before.
   */
  async signed(sentAt: number, answeredAt: number, live: () => readonly Activation[]): Promise<boolean> {
    const wasSilent = answeredAt - this.#lastSign > this.#leaseMs;
    this.#lastSign = sentAt;
    if (wasSilent) await Promise.all(live().map((activation) => this.#look(activation)));
    return wasSilent;
  }

  async #look(activation: Activation): Promise<void> {
    const { key, epoch } = activation;
    const holder = await this.#stores.holder(key);
    if (holder?.epoch === epoch) return;
    activation.discard(
      new LeaseLostError(`agent ${key.agentId} was taken over while this process gave no sign of life`),
    );
  }
}
