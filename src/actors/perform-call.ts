import { faultPoint } from "../base/index.ts";
import type { CallEffectInput } from "../machines/index.ts";
import { type CallState, foldCall } from "../state/index.ts";
import { runControlTool } from "./background-calls.ts";
import { effectActor } from "./effect.ts";
import { gateCall } from "./gate.ts";
import type { Host } from "./host.ts";
import { runInternalTool } from "./internal-tools.ts";
import { askFirst, takeDecision } from "./requests.ts";
import { runTool } from "./run-tool.ts";
import { errorResult, settleCall } from "./settle-call.ts";
import { spawnSubagent } from "./subagent-calls.ts";
import { grantedTool } from "./tool-calls.ts";

/**
 * One tool call from its declaration to its result. After a restart or a decision it reads from the fold how far the call had
 * come: a gated call is not gated again, and a started one is repeated only if its effect class allows it.
 */
export const performCall = effectActor<CallEffectInput>("performCall", async (host, { turnId, callId }, signal) => {
  const call = host.call(turnId, callId);
  if (!call || call.outcome !== null) return;
  const gated = await gate(host, call, signal);
  if (!gated || signal.aborted) return;
  const tool = grantedTool(host, gated.name);
  if (!tool) return settleGone(host, gated);
  const decided = takeDecision(host, gated, tool);
  if (!decided || settleRefused(host, decided) || (await askFirst(host, decided, tool, signal))) return;
  if (signal.aborted) return;
  if (tool.kind === "internal") await runInternalTool(host, decided, tool, signal);
  else if (tool.kind === "control") await runControlTool(host, decided, tool, signal);
  else if (tool.kind === "subagent") await spawnSubagent(host, decided, tool, signal);
  else if (tool.kind === "function") await runTool(host, decided, tool, signal);
});

/** The call with its verdict; undefined when it was refused, and so settled. */
async function gate(host: Host, call: CallState, signal: AbortSignal): Promise<CallState | undefined> {
  if (call.gate) return settleRefused(host, call) ? undefined : call;
  const entry = await gateCall(host, call, signal);
  if (!entry || signal.aborted) return undefined;
  faultPoint("call.gated");
  const gated = foldCall(call, entry);
  return settleRefused(host, gated) ? undefined : gated;
}

/** Settles the call if its verdict is a refusal; false when it is allowed. */
function settleRefused(host: Host, call: CallState): boolean {
  if (!call.gate || call.gate.verdict === "allowed") return false;
  const { verdict, message } = call.gate;
  const outcome = verdict === "failed" ? "error" : verdict;
  settleCall(host, call, errorResult(message ?? "the call was refused", verdict, outcome));
  return true;
}

/** Settles a call whose tool the definition no longer has (design, The journal). */
function settleGone(host: Host, call: CallState): void {
  const text = `The tool "${call.name}" is not available any more.`;
  settleCall(
    host,
    call,
    errorResult(text, "tool_unavailable", call.startedEpoch === null ? "error" : "outcome_unknown"),
  );
}

/**
 * Adds a call to its queue. After a restart or a pause it does so again: the queue keeps one job, and the worker reads from the
 * store whether the call is still to be run.
 */
export const enqueueCall = effectActor<CallEffectInput>(
  "enqueueCall",
  async (host, { turnId, callId }, signal) => {
    const call = host.call(turnId, callId);
    if (!call || call.queue === null || call.outcome !== null) return;
    await host.queue.add(call, signal);
    faultPoint("tool.queued");
  },
  { isOutlived: true },
);
