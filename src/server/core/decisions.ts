import type { Decide } from "../../runtime/index.ts";
import type { AgentRequest } from "../../state/index.ts";

/** Whether a closed request has the same result as this decision would have. */
export function isAlike({ decision }: AgentRequest, wanted: Omit<Decide, "by" | "key">): boolean {
  // A client must cancel a request that has expired or ended with its turn.
  if (wanted.verdict === "rejected" && (decision === null || decision.verdict === "expired")) return true;
  if (decision?.verdict !== wanted.verdict) return false;
  if (wanted.verdict === "edited") return JSON.stringify(decision.arguments) === JSON.stringify(wanted.arguments);
  if (wanted.verdict !== "answered") return true;
  const { result } = wanted;
  return decision.result?.text === (typeof result === "string" ? result : JSON.stringify(result));
}
