import type { DeadLetter } from "./ports.ts";

/** The newest dead letters of one queue, at most so many. */
export class LocalDeadLetters {
  readonly #kept: number;
  /** In the order in which they came. */
  readonly #letters: DeadLetter[] = [];
  readonly #counts = new Map<string, number>();

  constructor(kept: number) {
    this.#kept = kept;
  }

  get size(): number {
    return this.#letters.length;
  }

  has(jobId: string): boolean {
    return this.#counts.has(jobId);
  }

  keep(letter: DeadLetter): void {
    this.#letters.push(letter);
    this.#count(letter.jobId, 1);
    if (this.#letters.length <= this.#kept) return;
    const oldest = this.#letters.shift();
    if (oldest) this.#count(oldest.jobId, -1);
  }

  newest(limit: number): DeadLetter[] {
    return this.#letters.slice(-limit).toReversed();
  }

  #count(jobId: string, by: 1 | -1): void {
    const count = (this.#counts.get(jobId) ?? 0) + by;
    if (count === 0) this.#counts.delete(jobId);
    else this.#counts.set(jobId, count);
  }
}
