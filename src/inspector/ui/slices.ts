/** How long the page may work before it yields to the browser. */
const SLICE_MS = 8;

declare const scheduler: { readonly yield?: () => Promise<void> } | undefined;

/** Resolves after yielding to the browser. Faster than a timer, because browsers delay consecutive timers. */
export function otherTasks(): Promise<void> {
  if (typeof scheduler !== "undefined" && scheduler.yield) return scheduler.yield();
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.addEventListener("message", () => {
      port1.close();
      resolve();
    });
    port1.start();
    port2.postMessage(null);
  });
}

/** Long work in slices: await `pause` between its steps; it yields to the browser when a slice is over. */
export class Slices {
  #until = performance.now() + SLICE_MS;

  get isOver(): boolean {
    return performance.now() >= this.#until;
  }

  async pause(): Promise<void> {
    if (!this.isOver) return;
    await otherTasks();
    this.#until = performance.now() + SLICE_MS;
  }
}

/**
 * A read that is repeated on request: one at a time, and at most once every `everyMs`, however often it is requested.
 */
export class Rereading {
  readonly #read: () => Promise<unknown>;
  readonly #everyMs: number;
  #isDue = false;
  #isBusy = false;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(read: () => Promise<unknown>, everyMs: number) {
    this.#read = read;
    this.#everyMs = everyMs;
  }

  ask(): void {
    this.#isDue = true;
    if (!this.#isBusy) void this.#readNow();
  }

  end(): void {
    this.#isBusy = true;
    clearTimeout(this.#timer);
  }

  async #readNow(): Promise<void> {
    this.#isDue = false;
    this.#isBusy = true;
    await this.#read().catch(() => undefined);
    this.#timer = setTimeout(() => {
      this.#isBusy = false;
      if (this.#isDue) this.ask();
    }, this.#everyMs);
  }
}
