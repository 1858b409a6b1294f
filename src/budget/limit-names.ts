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
export const limitFlags = ["strict", "finalAnswer", "askAtLimit"] as const;
export type LimitFlag = (typeof limitFlags)[number];

/** The windows of accounts above the root of a team, the shortest first; an account of `total` never renews. */
export const outerWindows = ["perMinute", "perHour", "perDay", "perMonth", "total"] as const;
export type OuterWindow = (typeof outerWindows)[number];

/** Whose spending an account above the root counts. */
export const outerScopes = ["owner", "tenant"] as const;
export type OuterScope = (typeof outerScopes)[number];
