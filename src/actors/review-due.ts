import type { Host } from "./host.ts";

/** What `onError` is for: a refusal by people or policies, and an interruption, are no failures of the tool. */
export function isFailure(outcome: string): boolean {
  return outcome === "error" || outcome === "invalid" || outcome === "not_found" || outcome === "outcome_unknown";
}

/** Whether hooks are to look at a call that ended like this. */
export function isReviewDue(host: Host, turnId: string, outcome: string): boolean {
  const hooks = host.turn(turnId)?.hooks;
  if (!hooks || outcome === "interrupted") return false;
  return hooks.afterEachTool > 0 || (hooks.onError > 0 && isFailure(outcome));
}
