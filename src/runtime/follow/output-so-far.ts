import type { Json } from "../../state/index.ts";

/** The value is read again when the text has grown by this share, or by this many characters if that is more. */
const GROWTH = 1 / 16;
const LEAST_GROWTH = 16;

/**
 * The values of an answer while it is written, each of which replaces the one before. The text is read whole each time, but only after
 * it has grown by a share of its length: all readings and values together are linear in the length of the answer.
 */
export class OutputSoFar {
  readonly #partial: (text: string) => Json | undefined;
  #nextLength = 1;
  #shown: string | undefined;

  constructor(partial: (text: string) => Json | undefined) {
    this.#partial = partial;
  }

  /** The value to show now; `undefined` if it is not time yet, or if there is nothing new. */
  next(text: string, isComplete: boolean): Json | undefined {
    if (text.length < this.#nextLength && !isComplete) return undefined;
    this.#nextLength = text.length + Math.max(LEAST_GROWTH, Math.ceil(text.length * GROWTH));
    const value = this.#partial(text);
    if (value === undefined) return undefined;
    const shown = JSON.stringify(value);
    if (shown === this.#shown) return undefined;
    this.#shown = shown;
    return value;
  }
}
