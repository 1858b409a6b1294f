import { faultPoint } from "../base/index.ts";
import { type CallState, foldCall } from "../state/index.ts";
import { effectActor } from "./effect.ts";
import { gateCall, grantedTool } from "./gate.ts";
import type { Host } from "./host.ts";
import { runTool } from "./run-tool.ts";
import { errorResult, settleCall } from "./settle-call.ts";
import { spawnSubagent } from "./spawn-subagent.ts";

interface CallInput {
  readonly turnId: string;
  readonly callId: string;
}

/**
 * One tool call from its declaration to its result. Started again after a restart it reads from the fold how far the
 * call had come: what was gated is not gated again, and what was started is repeated only if its effect class allows it.
 */
export const performCall = effectActor<CallInput>("performCall", async (host, { turnId, callId }, signal) => {
  const call = host.call(turnId, callId);
  if (!call || call.outcome !== null) return;
  const gated = call.gate ? call : foldCall(call, gateCall(host, call));
  if (!gated.gate) return;
  faultPoint("call.gated");
  const { verdict, message } = gated.gate;
  if (verdict !== "allowed") {
    const outcome = verdict === "failed" ? "error" : verdict;
    settleCall(host, gated, errorResult(message ?? "the call was refused", verdict, outcome));
    return;
  }
  const tool = grantedTool(host, gated.name);
  if (!tool) return settleGone(host, gated);
  if (tool.kind === "subagent") await spawnSubagent(host, gated, tool, signal);
  else await runTool(host, gated, tool, signal);
});

/** The definition no longer has the tool that was gated: the agent goes on without it (design, The journal). */
function settleGone(host: Host, call: CallState): void {
  const text = `The tool "${call.name}" is not available any more.`;
  settleCall(
    host,
    call,
    errorResult(text, "tool_unavailable", call.startedEpoch === null ? "error" : "outcome_unknown"),
  );
}
