import { atLeastOne } from "./at-least-one.ts";
import type { CompactionStrategy } from "./compaction.ts";
import { planCompaction } from "./compaction-plan.ts";

export interface DropOldestOptions {
  /** Newest messages that stay. Default 20. */
  readonly keep?: number | undefined;
}

/** Leaves the oldest messages out, an earlier summary among them; nothing stands for them. It costs nothing. */
export function dropOldest({ keep = 20 }: DropOldestOptions = {}): CompactionStrategy {
  atLeastOne("keep of dropOldest()", keep);
  return Object.freeze({
    name: "dropOldest",
    compact: async (input: Parameters<CompactionStrategy["compact"]>[0]) => {
      const plan = planCompaction(input, input.keep ?? keep);
      return plan && { through: plan.through, summary: null, keepIds: plan.keepIds };
    },
  });
}
