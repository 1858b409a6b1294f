import type { Clock } from "../../base/index.ts";
import type { ProcessIdentity, Stores } from "../../stores/index.ts";

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
