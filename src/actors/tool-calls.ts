import type { AgentTool } from "../agents/index.ts";
import { shortHash, stableStringify } from "../base/index.ts";
import {
  type CallPatch,
  type EntryOf,
  type Json,
  partsOfCall,
  type StoredError,
  textOf,
  type ToolCallRequest,
} from "../state/index.ts";
import type { Host } from "./host.ts";

/** The call as the model wrote it. */
export function requestOfCall(host: Host, callId: string): ToolCallRequest | undefined {
  const { turnId, step, index } = partsOfCall(callId);
  const message = host.message(`${turnId}:${step}`);
  return message?.role === "assistant" ? message.toolCalls?.[index] : undefined;
}

/** The arguments of a call as text: the model's own, or those of a hook. */
export function argumentsTextOf(host: Host, callId: string): string {
  const changed = callPatchesOf(host, callId).findLast((patch) => patch.arguments !== undefined);
  return changed?.arguments ?? requestOfCall(host, callId)?.arguments ?? "";
}

/** The changes of a call by `afterLlm` and `beforeTools` hooks, in order. */
export function callPatchesOf(host: Host, callId: string): CallPatch[] {
  const { turnId } = partsOfCall(callId);
  return host
    .memory(turnId)
    .entries.flatMap((entry) =>
      entry.type === "hook.applied" ? (entry.patch.calls ?? []).filter((patch) => patch.callId === callId) : [],
    );
}

/** The tool, if the agent has it and was granted it. Neither the journal nor a model can grant one (S14). */
export function grantedTool(host: Host, name: string): AgentTool | undefined {
  const { tools } = host.definition;
  const { grantedTools, deniedTools = [] } = host.identity;
  const isGranted = tools.isOnDemand(name) ? !deniedTools.includes(name) : (grantedTools?.includes(name) ?? true);
  return isGranted ? tools.get(name) : undefined;
}

export function hashOfArguments(args: Json): string {
  return shortHash(stableStringify(args));
}

/** One call with its result, as hooks see it. */
interface RoundResult {
  readonly call: { readonly callId: string; readonly name: string; readonly arguments: string };
  readonly outcome: EntryOf<"tool.settled">["outcome"];
  /** For the model. */
  readonly text: string;
  /** Milliseconds from its start. */
  readonly durationMs: number;
  readonly error: StoredError | null;
}

/** The results of the round that has just ended, in the order of its calls. */
export function resultsOfRound(host: Host, turnId: string): RoundResult[] {
  const calls = host.turn(turnId)?.execution.currentStep?.toolExecutions ?? [];
  return calls.flatMap(({ callId }) => resultOfCall(host, turnId, callId) ?? []);
}

export function resultOfCall(host: Host, turnId: string, callId: string): RoundResult | undefined {
  const settled = host
    .memory(turnId)
    .entries.findLast(
      (entry): entry is EntryOf<"tool.settled"> => entry.type === "tool.settled" && entry.callId === callId,
    );
  if (!settled) return undefined;
  const { name, outcome, messageId, durationMs, error } = settled;
  const text = textOf(host.message(messageId)?.content ?? "");
  return { call: { callId, name, arguments: argumentsTextOf(host, callId) }, outcome, text, durationMs, error };
}
