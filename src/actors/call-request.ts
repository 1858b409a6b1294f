import type { AgentTool } from "../agents/index.ts";
import { shortHash, stableStringify } from "../base/index.ts";
import { type CallPatch, type Json, partsOfCall, type ToolCallRequest } from "../state/index.ts";
import type { Host } from "./host.ts";

/** The call as the model wrote it. */
export function requestOfCall(host: Host, callId: string): ToolCallRequest | undefined {
  const { turnId, step, index } = partsOfCall(callId);
  const message = host.message(`${turnId}:${step}`);
  return message?.role === "assistant" ? message.toolCalls?.[index] : undefined;
}

/** The arguments of a call as text: the model's own, or what a hook put in their place. */
export function argumentsTextOf(host: Host, callId: string): string {
  const changed = callPatchesOf(host, callId).findLast((patch) => patch.arguments !== undefined);
  return changed?.arguments ?? requestOfCall(host, callId)?.arguments ?? "";
}

/** What `afterLlm` and `beforeTools` hooks changed of a call, in order. */
export function callPatchesOf(host: Host, callId: string): CallPatch[] {
  const { turnId } = partsOfCall(callId);
  return host
    .memory(turnId)
    .entries.flatMap((entry) =>
      entry.type === "hook.applied" ? (entry.patch.calls ?? []).filter((patch) => patch.callId === callId) : [],
    );
}

/** The tool, if the agent has it and was granted it. What the journal or a model says grants nothing (S14). */
export function grantedTool(host: Host, name: string): AgentTool | undefined {
  const { tools } = host.definition;
  const { grantedTools, deniedTools = [] } = host.identity;
  const isGranted = tools.isOnDemand(name) ? !deniedTools.includes(name) : (grantedTools?.includes(name) ?? true);
  return isGranted ? tools.get(name) : undefined;
}

export function hashOfArguments(args: Json): string {
  return shortHash(stableStringify(args));
}
