/** A step from one layout of the schema to the next. A released step is never changed: a new layout is a new step. */
export interface Migration {
  /** The layout after the step. Steps are numbered from 1, without gaps. */
  readonly number: number;
  /** The first version of this package that reads that layout. */
  readonly troupe: string;
  /** Run in order within a transaction of the runner. `schema`: the quoted name of the schema. */
  statements(schema: string): readonly string[];
}
