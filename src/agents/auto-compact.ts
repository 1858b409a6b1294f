import { type CompactionStrategy, summarize } from "../context/index.ts";

export interface AutoCompactOptions {
  /** Default: `summarize()`. */
  readonly strategy?: CompactionStrategy | undefined;
  /** How full the model's window may be, in percent, before the next call is preceded by a compaction. Default 80. */
  readonly atPercent?: number | undefined;
  /** Newest messages that stay as they are. Default: as the strategy has it, 20. */
  readonly keep?: number | undefined;
}

export interface AutoCompact {
  readonly strategy: CompactionStrategy;
  readonly atPercent: number;
  /** Absent: as the strategy has it. */
  readonly keep?: number;
}

/** Null: the conversation is never compacted (row L10). */
export function autoCompactOf(options: boolean | AutoCompactOptions | undefined): AutoCompact | null {
  if (options === undefined || options === false) return null;
  const { strategy = summarize(), atPercent = 80, keep } = options === true ? {} : options;
  return Object.freeze({ strategy, atPercent, ...(keep === undefined ? {} : { keep }) });
}
