import type { DatabaseSync } from "node:sqlite";

/** A step from one layout of the file to the next. A released step is never changed: a new layout is a new step. */
export interface Migration {
  /** The layout after the step. Steps are numbered from 1, without gaps. */
  readonly number: number;
  /** The first version of this package that reads that layout. */
  readonly troupe: string;
  /** Runs within a transaction that the runner commits. */
  apply(database: DatabaseSync): void;
}
