import type { JournalRow } from "../../state/index.ts";

/** Something to write, and how far the projection has come when it is written. */
export interface ProjectionStep {
  readonly through: number;
  write(): Promise<void>;
}

/** One store of the user's, and what rows of the journal mean for it. */
export interface Projection {
  /** Under which its cursor is kept. */
  readonly name: string;
  /** What it is called in a warning. */
  readonly words: string;
  /** Consecutive rows of one tree as writes, to be done in order. */
  steps(rows: readonly JournalRow[]): readonly ProjectionStep[];
}
