/** Bounds of a part of the history that moves in blocks. */
export interface HistoryBlock {
  /** How many of the newest always stay. */
  readonly least: number;
  /** How many there may be before the oldest are left out. */
  readonly most: number;
}

/**
 * How many of `count` are left out at the front. Depends on the count alone, so that a restarted process chooses the same; it changes
 * once for each `most - least` more, so that prompts in between begin with the same messages.
 */
export function leftOut({ least, most }: HistoryBlock, count: number): number {
  const step = Math.max(1, most - least);
  return Math.max(0, Math.ceil((count - most) / step) * step);
}
