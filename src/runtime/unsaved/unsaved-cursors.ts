import type { JournalRow } from "../../state/index.ts";

/**
 * A tree that is copied into memory gets new cursors there, from 1 on. Clients hold the ones they were given before, so
 * that outside of here its rows keep theirs, and new rows go on behind them.
 */
export class CopiedCursors {
  /** Cursor here to the one that it was copied with, in order. */
  readonly #copied: ReadonlyMap<number, number>;
  readonly #lastHere: number;
  readonly #lastThere: number;

  constructor(here: readonly JournalRow[], there: readonly JournalRow[]) {
    this.#copied = new Map(here.map((row, index) => [row.cursor, there[index]?.cursor ?? 0]));
    this.#lastHere = here.at(-1)?.cursor ?? 0;
    this.#lastThere = there.at(-1)?.cursor ?? 0;
  }

  /** As clients see it; 0, which is no row, stays 0. */
  outward(cursor: number): number {
    return cursor > this.#lastHere ? cursor - this.#lastHere + this.#lastThere : (this.#copied.get(cursor) ?? 0);
  }

  /** The last row here up to a cursor that a client holds. */
  inward(cursor: number): number {
    if (cursor >= this.#lastThere) return cursor - this.#lastThere + this.#lastHere;
    let found = 0;
    for (const [here, there] of this.#copied) if (there <= cursor) found = here;
    return found;
  }

  outwardRows(rows: readonly JournalRow[]): JournalRow[] {
    return rows.map((row) => ({ ...row, cursor: this.outward(row.cursor) }));
  }
}
