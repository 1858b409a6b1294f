/** Variables of the environment by which `troupe eval` directs `runCase()` in the processes of the tests. */
export const evalVariables = {
  /** `1`: models that call a server may run although `CI` is set. */
  live: "TROUPE_EVAL_LIVE",
  /** Path of the SQLite file in which runs are kept. */
  store: "TROUPE_EVAL_STORE",
  /** Path of the file in which the cases write what they have cost; only with a limit. */
  spending: "TROUPE_EVAL_SPENDING",
  /** The limit of all cases, in dollars. */
  maxCost: "TROUPE_EVAL_MAX_COST",
} as const;
