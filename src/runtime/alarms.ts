import { type Clock, clockTickMs } from "../base/index.ts";
import type { Timer } from "../state/index.ts";
import type { Stores } from "../stores/index.ts";

/** Longest time between two looks at the store: another process may have set a timer and died. */
const LOOK_AGAIN_MS = 5_000;

/** Fires stored timers that are due: whoever is alive does it (design, Timers). */
export class Alarms {
  readonly #stores: Stores;
  readonly #clock: Clock;
  readonly #onDue: (timer: Timer) => Promise<void>;
  #cancel: (() => void) | undefined;
  #armedAt = Number.POSITIVE_INFINITY;
  #closed = false;

  constructor(stores: Stores, clock: Clock, onDue: (timer: Timer) => Promise<void>) {
    this.#stores = stores;
    this.#clock = clock;
    this.#onDue = onDue;
  }

  async start(): Promise<void> {
    this.#arm((await this.#stores.nextTimerAt()) ?? this.#clock.now() + LOOK_AGAIN_MS);
  }

  note(timers: readonly Timer[]): void {
    for (const { dueAt } of timers) this.#arm(dueAt);
  }

  close(): void {
    this.#closed = true;
    this.#cancel?.();
  }

  #arm(at: number): void {
    const next = Math.min(at, this.#clock.now() + LOOK_AGAIN_MS);
    if (this.#closed || next >= this.#armedAt) return;
    this.#cancel?.();
    this.#armedAt = next;
    this.#cancel = this.#clock.setTimer(next, () => {
      this.#armedAt = Number.POSITIVE_INFINITY;
      this.#fire().catch((error: unknown) => process.emitWarning(`timers could not be read: ${String(error)}`));
    });
  }

  async #fire(): Promise<void> {
    if (this.#closed) return;
    for (const timer of await this.#stores.dueTimers(this.#clock.now(), 100)) await this.#onDue(timer);
    const next = (await this.#stores.nextTimerAt()) ?? Number.POSITIVE_INFINITY;
    // One that stays due is another owner's: it fires it itself.
    this.#arm(Math.max(next, this.#clock.now() + clockTickMs));
  }
}
