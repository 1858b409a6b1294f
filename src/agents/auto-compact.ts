import { type CompactionStrategy, summarize } from "../context/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import { checkedStrategy } from "./context-checks.ts";

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
export function autoCompactOf(agent: string, options: boolean | AutoCompactOptions | undefined): AutoCompact | null {
  if (options === undefined || options === false) return null;
  const { strategy = summarize(), atPercent = 80, keep } = options === true ? {} : options;
  if (!(atPercent > 0 && atPercent <= 100)) {
    throw new InvalidInputError(`agent "${agent}": autoCompact.atPercent is ${atPercent}; use more than 0, up to 100`);
  }
  if (keep !== undefined && (!Number.isSafeInteger(keep) || keep < 1)) {
    throw new InvalidInputError(`agent "${agent}": autoCompact.keep is ${keep}; use a whole number of at least 1`);
  }
  return { strategy: checkedStrategy(agent, strategy), atPercent, ...(keep === undefined ? {} : { keep }) };
}
