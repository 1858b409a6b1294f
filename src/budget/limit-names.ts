/** In the order in which limits are checked: steps, tool calls, tokens, cost, time. */
export const limitNames = [
  "maxSteps",
  "maxTreeSteps",
  "maxToolCalls",
  "maxTreeToolCalls",
  "maxTokens",
  "maxCostMicros",
  "maxActiveMs",
  "deadlineAt",
] as const;
/** Name of a limit in `Budget`, events and results. */
export type LimitName = (typeof limitNames)[number];

/** The fields of `Limits` that are flags, not limits. */
export const limitFlags = ["strict", "finalAnswer"] as const;
export type LimitFlag = (typeof limitFlags)[number];
