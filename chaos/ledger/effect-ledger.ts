import { openLineWriter, readLines } from "../line-log.ts";

/** How the receiver treats repeated attempts: `keyed` receivers ignore them, others apply them again. */
export type ReceiverClass = "none" | "keyed" | "once";

export interface AttemptRequest {
  readonly key: string;
  readonly tool: string;
  readonly effect: ReceiverClass;
  /** Id of the calling process. */
  readonly pid: number;
}

export interface Attempt extends AttemptRequest {
  /** Sequence number among all attempts, from 1. */
  readonly number: number;
  /** Milliseconds since the epoch. */
  readonly at: number;
  /** Whether it had an effect: a repeat at a keyed receiver has none. */
  readonly applied: boolean;
  /** The receiver's receipt. A repeat at a keyed receiver gets the receipt of the first attempt. */
  readonly receipt: string;
}

export interface KeyCounts {
  readonly key: string;
  readonly attempts: number;
  readonly effects: number;
  /** Receipt of the first effect; `null` if there was none. */
  readonly receipt: string | null;
}

/**
 * The world outside the system: the list of all attempts at effects.
 * Owns: the log of attempts and the keys of keyed receivers. Does not own: the callers.
 *
 * Invariants
 * 1. An attempt is answered only after it is on disk.
 * 2. At a keyed receiver a key has one effect, however often and by whichever process it is sent.
 */
export class EffectLedger {
  readonly #writer;
  readonly #keys = new Map<string, KeyCounts>();
  #attempts = 0;

  /** Continues the log at `path`. */
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
