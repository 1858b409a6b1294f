import type { TurnState } from "./turn-state.ts";

/** Whether calls to the model or of tools of this turn have neither an outcome nor a result. */
export function hasOpenWork(turn: TurnState): boolean {
  const { openRequest, openCallIds, unreviewedCallIds, openGenerates } = turn;
  return openRequest !== null || openCallIds.length + unreviewedCallIds.length + openGenerates.length > 0;
}

/** Whether hooks or a schema have to see the answer that has just come, before anything follows from it. */
export function isAnswerChecked({ hooks, openCallIds, checksOutput }: TurnState): boolean {
  if (hooks.afterLlm > 0) return true;
  return openCallIds.length > 0 ? hooks.beforeTools > 0 : checksOutput;
}

/**
 * Nothing of the turn's own is under way: every call that is open waits for a child, for somebody's decision, or in line
 * behind calls of which the same is true.
 */
export function isResting(turn: TurnState, isInLine: (callId: string) => boolean = () => false): boolean {
  const { openCallIds, waitingCallIds } = turn;
  if (turn.execution.status !== "in_progress" || turn.openRequest !== null || openCallIds.length === 0) return false;
  if (turn.openGenerates.length > 0 || turn.unreviewedCallIds.length > 0) return false;
  return openCallIds.every((callId) => waitingCallIds.includes(callId) || isInLine(callId));
}

/** The calls of the answer that has come, which are still to be made. */
export function openCallsOf({ openCallIds, execution }: TurnState): { callId: string; name: string }[] {
  const calls = execution.currentStep?.toolExecutions ?? [];
  return calls.flatMap(({ callId, name }) => (openCallIds.includes(callId) ? [{ callId, name }] : []));
}
