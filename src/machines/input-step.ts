import type { TurnState } from "../state/index.ts";

/** States of a turn that makes no further model call. */
const closed: ReadonlySet<unknown> = new Set(["stopping", "completing", "finishing", "done", "stopped", "failed"]);

/**
 * The step whose model call sees an input that arrives now; `null` if the turn makes no further call for it: it is ending, or its budget
 * allows none. `state`: the value of the turn's machine. `isMissed`: the next call will not show it, because the call has been asked for
 * and is not granted yet, or because its `beforeLlm` hooks have begun.
 */
export function stepOfInput(turn: TurnState, state: unknown, isMissed: boolean): number | null {
  const { execution, limits, isLastCall, openRequest, attempt, step, appliedHooks } = turn;
  if (closed.has(state) || isLastCall || execution.continuation.stopSignals.length > 0) return null;
  const next = attempt > 0 ? step : step + 1;
  // `beforeLlm` hooks of this step have not seen the input, so it waits for those of the next one.
  const isLate = appliedHooks.some((key) => key.startsWith("beforeLlm:"));
  const seenAt = openRequest !== null || isMissed || isLate ? next + 1 : next;
  return limits.maxSteps !== undefined && seenAt > limits.maxSteps ? null : seenAt;
}
