import { createDeferred, type Deferred } from "../base/index.ts";

/** Those who wait until nothing of the open turn's own is out in the world. */
export class QuietWatch {
  readonly #isQuiet: () => boolean;
  #waiter: Deferred<void> | undefined;

  constructor(isQuiet: () => boolean) {
    this.#isQuiet = isQuiet;
  }

  async quiet(): Promise<void> {
    if (this.#isQuiet()) return;
    this.#waiter ??= createDeferred();
    await this.#waiter.promise;
  }

  /** To be called after each entry; costs nothing while nobody waits. */
  look(): void {
    if (!this.#waiter || !this.#isQuiet()) return;
    this.#waiter.resolve();
    this.#waiter = undefined;
  }
}
