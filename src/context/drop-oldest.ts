import { optionsOf, wholeNumberRule } from "../base/index.ts";
import type { CompactionStrategy } from "./compaction.ts";
import { planCompaction } from "./compaction-plan.ts";

export interface DropOldestOptions {
  /** Newest messages that stay. Default 20. */
  readonly keep?: number | undefined;
}

/** Leaves the oldest messages out, an earlier summary among them; nothing stands for them. It costs nothing. */
export function dropOldest(options?: DropOldestOptions): CompactionStrategy {
  const { keep = 20 } = optionsOf<DropOldestOptions>(options, "dropOldest()", { rules: { keep: wholeNumberRule(1) } });
  return Object.freeze({
    name: "dropOldest",
    compact: async (input: Parameters<CompactionStrategy["compact"]>[0]) => {
      const plan = planCompaction(input, input.keep ?? keep);
      return plan && { through: plan.through, summary: null, keepIds: plan.keepIds };
    },
  });
}
