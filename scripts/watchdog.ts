export interface Limits {
  /** Milliseconds in all. */
  readonly timeoutMs?: number | undefined;
  /** Milliseconds without a sign of life. */
  readonly silentMs?: number | undefined;
}

/** Watches a command: `onOver` is told once, in words, which of the limits it has passed. */
export class Watchdog {
  readonly #limits: Limits;
  readonly #onOver: (reason: string) => void;
  readonly #total: NodeJS.Timeout | undefined;
  #silence: NodeJS.Timeout | undefined;

  constructor(limits: Limits, onOver: (reason: string) => void) {
    this.#limits = limits;
    this.#onOver = onOver;
    const { timeoutMs } = limits;
    if (timeoutMs !== undefined) {
      this.#total = setTimeout(() => this.#tell(`did not end within ${timeoutMs / 1_000} s`), timeoutMs);
    }
    this.heard();
  }

  /** The command has shown that it goes on. */
  heard(): void {
    const { silentMs } = this.#limits;
    if (silentMs === undefined) return;
    clearTimeout(this.#silence);
    this.#silence = setTimeout(() => this.#tell(`hangs: it printed nothing for ${silentMs / 1_000} s`), silentMs);
  }

  stop(): void {
    clearTimeout(this.#total);
    clearTimeout(this.#silence);
  }

  #tell(reason: string): void {
    this.stop();
    this.#onOver(reason);
  }
}
