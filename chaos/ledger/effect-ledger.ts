import { openLineWriter, readLines } from "../line-log.ts";

/** How the receiver treats a repeat: `keyed` receivers drop what they have had, the others do it again. */
export type ReceiverClass = "none" | "keyed" | "once";

export interface AttemptRequest {
  readonly key: string;
  readonly tool: string;
  readonly effect: ReceiverClass;
  /** Process that asks. */
  readonly pid: number;
}

export interface Attempt extends AttemptRequest {
  /** Place in the order of all attempts, from 1. */
  readonly number: number;
  /** Milliseconds since the epoch. */
  readonly at: number;
  /** Whether it had an effect: a repeat at a keyed receiver has none. */
  readonly applied: boolean;
  /** What the receiver gives as a proof; a repeat at a keyed receiver gets the first one's. */
  readonly receipt: string;
}

export interface KeyCounts {
  readonly key: string;
  readonly attempts: number;
  readonly effects: number;
  /** Of the first effect; null when there was none. */
  readonly receipt: string | null;
}

/**
 * The world outside the system, as a list of what reached it.
 * Owns: the log of attempts and what a keyed receiver remembers. Does not own: who asks, and why.
 *
 * Invariants
 * 1. An attempt is answered only when it is on the disk.
 * 2. At a keyed receiver a key has one effect, however often and by which process it is asked.
 */
export class EffectLedger {
  readonly #writer;
  readonly #keys = new Map<string, KeyCounts>();
  #attempts = 0;

  /** Goes on where the log at `path` ends. */
  constructor(path: string) {
    for (const attempt of readLines<Attempt>(path)) this.#note(attempt);
    this.#writer = openLineWriter(path, { sync: true });
  }

  attempt(request: AttemptRequest, at: number): Attempt {
    const known = this.#keys.get(request.key);
    const isRepeat = request.effect === "keyed" && known !== undefined && known.effects > 0;
    const number = this.#attempts + 1;
    const receipt = isRepeat && known.receipt !== null ? known.receipt : `receipt-${number}`;
    const attempt = { number, at, ...request, applied: !isRepeat, receipt };
    this.#writer.append(attempt);
    this.#note(attempt);
    return attempt;
  }

  of(key: string): KeyCounts {
    return this.#keys.get(key) ?? { key, attempts: 0, effects: 0, receipt: null };
  }

  counts(): { readonly attempts: number; readonly effects: number; readonly keys: number } {
    const effects = [...this.#keys.values()].reduce((sum, counts) => sum + counts.effects, 0);
    return { attempts: this.#attempts, effects, keys: this.#keys.size };
  }

  close(): void {
    this.#writer.close();
  }

  #note({ key, number, applied, receipt }: Attempt): void {
    const before = this.of(key);
    this.#attempts = number;
    this.#keys.set(key, {
      key,
      attempts: before.attempts + 1,
      effects: before.effects + (applied ? 1 : 0),
      receipt: before.receipt ?? receipt,
    });
  }
}
