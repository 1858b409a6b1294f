import type { StoreUnavailableError } from "../../errors/index.ts";
import type { AgentKey, Entry } from "../../state/index.ts";
import type { Committed, Stale } from "../../stores/index.ts";

export interface WriterStart {
  readonly key: AgentKey;
  readonly epoch: number;
  /** The process that has the lease. */
  readonly processId: string;
  /** Last committed entry, and its time. */
  readonly seq: number;
  readonly at: number;
}

export interface WriterEvents {
  now(): number;
  /** The entry enters the machines. */
  deliver(entry: Entry): void;
  onCommitted(outcome: Committed): void;
  /** `seq`: of the last entry that was acknowledged here. */
  onStale(outcome: Stale, seq: number): void;
  /** The stores do not take a batch now; it is sent again, unless it was given up. */
  onRefused(error: StoreUnavailableError, isGivenUp: boolean): void;
  onFailure(error: unknown): void;
}
