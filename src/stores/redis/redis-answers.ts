/** Thrown out of a piece of work that needs what is not here yet; it runs again when that was loaded. */
export class Missing {
  readonly key: string;
  readonly load: () => Promise<unknown>;
  /** Names of rows that are to be loaded instead, so that those of several pieces of work come together. */
  readonly rows: readonly string[];

  constructor(key: string, load: () => Promise<unknown>, rows: readonly string[] = []) {
    this.key = key;
    this.load = load;
    this.rows = rows;
  }
}

/** Thrown out of a piece of work that cannot be judged together with those before it; it goes first the next time. */
export class NotTogether {
  readonly why: string;

  constructor(why: string) {
    this.why = why;
  }
}

/** Answers to questions of one piece of work, each loaded once; a promise of none of them is kept. */
export class Answers {
  readonly #known = new Map<string, unknown>();

  ask<T>(key: string, load: () => Promise<T>): T {
    if (this.#known.has(key)) return this.#known.get(key) as T;
    throw new Missing(key, load);
  }

  get(key: string): unknown {
    return this.#known.get(key);
  }

  set(key: string, value: unknown): void {
    this.#known.set(key, value);
  }

  forget(key: string): void {
    this.#known.delete(key);
  }

  forgetAll(): void {
    this.#known.clear();
  }
}
