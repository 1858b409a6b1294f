/** In the order in which they are checked: steps, tool calls, tokens, cost, time. */
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
/** Name of a limit, as `Budget`, events and results write it. */
export type LimitName = (typeof limitNames)[number];

/** The fields of `Limits` that are no limits. */
export const limitFlags = ["strict", "finalAnswer"] as const;
export type LimitFlag = (typeof limitFlags)[number];
