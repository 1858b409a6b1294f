import type { RedisClient } from "../../../redis/index.ts";

/** A step from one layout of the keys under a prefix to the next. */
export interface Migration {
  /** The layout that it leads to: 1, 2, and so on without gaps. */
  readonly number: number;
  /** The first version of this package that reads that layout. */
  readonly troupe: string;
  /**
   * Changes what lies under the prefix. A process may die in it, and another one takes it again: what is changed already must be
   * left as it is.
   */
  apply(client: RedisClient, prefix: string): Promise<void>;
}
