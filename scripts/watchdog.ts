export interface Limits {
  /** Most milliseconds in total. */
  readonly timeoutMs?: number | undefined;
  /** Most milliseconds without output. */
  readonly silentMs?: number | undefined;
}

/** Watches a command. Calls `onOver` once with the exceeded limit in words. */
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

  /** Call when the command has printed something. */
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
