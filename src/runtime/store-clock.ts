import type { Clock } from "../base/index.ts";

/** A process' clock whose `elapsed()` is the steady time of the stores, once the process is registered with them. */
export class StoreClock implements Clock {
  readonly #clock: Clock;
  #offset = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** `offset`: what the stores have answered when the process was registered. */
  anchor(offset: number): void {
    this.#offset = offset;
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
}
