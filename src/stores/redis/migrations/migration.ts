import type { RedisClient } from "../../../redis/index.ts";

/** A step from one layout of the keys under a prefix to the next. */
export interface Migration {
  /** The layout after this step: 1, 2, and so on without gaps. */
  readonly number: number;
  /** The first version of this package that reads that layout. */
  readonly troupe: string;
  /**
   * Changes the keys under the prefix. If a process dies during the step, another one runs it again, so it must not change keys twice.
   */
  apply(client: RedisClient, prefix: string): Promise<void>;
}
