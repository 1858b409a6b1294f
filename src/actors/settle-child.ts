import { faultPoint } from "../base/index.ts";
import type { CallState } from "../state/index.ts";
import { effectActor } from "./effect.ts";
import type { ChildEnd } from "./host.ts";
import { type CallResult, errorResult, settleCall } from "./settle-call.ts";

/** The end of a child becomes the result of its call; of a child in the background, its beginning does. */
export const settleChild = effectActor<{ readonly turnId: string; readonly callId: string }>(
  "settleChild",
  (host, { turnId, callId }) => {
    const call = host.call(turnId, callId);
    if (!call || call.outcome !== null) return;
    const result =
      resultOfSpawn(call) ?? (call.childResult && resultOfChild(call.childResult as ChildEnd, call.prefix));
    if (!result) return;
    settleCall(host, call, result);
    faultPoint("child.result");
  },
);

/** What the model is told of a child that now goes on by itself; undefined for any other call. */
export function resultOfSpawn({ childId, isBackground }: CallState): CallResult | undefined {
  if (!isBackground || childId === null) return undefined;
  const note =
    "It works in the background, and its answer will reach you by itself. Use subagent_status, subagent_wait or subagent_cancel with this id.";
  return { outcome: "success", text: JSON.stringify({ agentId: childId, note }) };
}

export function resultOfChild({ outcome, stopReason, text }: ChildEnd, prefix: string | null = null): CallResult {
  const before = prefix ?? "";
  if (outcome === "completed") return { outcome: "success", text: `${before}${text}` };
  if (outcome === "stopped") {
    const note = `The subagent was stopped (${stopReason}) before it had finished. What it has: ${text}`;
    return { outcome: "success", text: `${before}${note}` };
  }
  return errorResult(`${before}The subagent failed: ${text}`, "subagent_failed");
}
