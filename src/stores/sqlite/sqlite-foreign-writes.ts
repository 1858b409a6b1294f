import type { ForeignWrites } from "../rules/foreign-write.ts";

/** How often others' writes are looked for, in milliseconds. */
const POLL_MS = 60;

/** Tells listeners when another connection has written; to what is not known. Looks only while somebody listens, and keeps no process alive. */
export class SqliteForeignWrites {
  readonly #version: () => unknown;
  readonly #listeners = new Set<(writes: ForeignWrites) => void>();
  #timer: NodeJS.Timeout | undefined;
  #last: unknown;

  /** `version` changes with every write of another connection; it may throw, then this look is left out. */
  constructor(version: () => unknown) {
    this.#version = version;
  }

  listen(listener: (writes: ForeignWrites) => void): () => void {
    // A function of its own, so that the same listener may come twice.
    const entry = (writes: ForeignWrites): void => listener(writes);
    this.#listeners.add(entry);
    if (!this.#timer) {
      this.#last = this.#look();
      this.#timer = setInterval(() => this.#poll(), POLL_MS);
      this.#timer.unref();
    }
    return () => {
      this.#listeners.delete(entry);
      if (this.#listeners.size === 0) this.stop();
    };
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#listeners.clear();
  }

  #poll(): void {
    const version = this.#look();
    if (version === undefined || version === this.#last) return;
    this.#last = version;
    for (const listener of this.#listeners) listener("any");
  }

  #look(): unknown {
    try {
      return this.#version();
    } catch {
      return undefined;
    }
  }
}
