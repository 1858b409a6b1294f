import type { StopReason } from "../state/index.ts";

/** What the process tells its caller. `waiting`: the turn is open and waits for somebody's decision or answer. */
export const exitCodes = { success: 0, failure: 1, usage: 2, budget: 3, waiting: 4, interrupted: 130 } as const;
export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];

const limitReasons: readonly StopReason[] = ["steps_limit", "token_limit", "cost_limit", "time_limit"];

/** A turn's end as an exit code: a limit that stopped it is told apart from a failure, and an abort from both. */
export function exitCodeOf(end: {
  readonly status: "completed" | "stopped" | "failed";
  readonly stopReason: StopReason;
}): ExitCode {
  if (end.status === "completed") return exitCodes.success;
  if (end.status === "failed") return exitCodes.failure;
  if (end.stopReason === "user_requested") return exitCodes.interrupted;
  if (limitReasons.includes(end.stopReason)) return exitCodes.budget;
  return end.stopReason === "stop_requested" ? exitCodes.success : exitCodes.failure;
}
