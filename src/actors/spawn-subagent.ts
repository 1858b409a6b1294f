import { DEFAULT_MAX_DEPTH, type SubagentTool } from "../agents/index.ts";
import { abortable, faultPoint } from "../base/index.ts";
import { type CallState, signalOfLimit, takeText } from "../state/index.ts";
import { storedErrorOf } from "./effect.ts";
import type { Host } from "./host.ts";
import { errorResult, settleCall } from "./settle-call.ts";

/** Asks for the child of a call to be brought into being; granted, the call awaits it and this effect is over. */
export async function spawnSubagent(
  host: Host,
  call: CallState,
  tool: SubagentTool,
  signal: AbortSignal,
): Promise<void> {
  const { turnId, step, callId } = call;
  const { maxConcurrent } = tool.policy;
  while (maxConcurrent !== undefined && !tool.background) {
    const atWork = atWorkOf(host, turnId, tool);
    if (atWork.length < maxConcurrent) break;
    await abortable(Promise.race(atWork.map((childId) => host.child(turnId, childId))), signal);
  }
  // From the last look to the proposal nothing is awaited: calls of one round see each other's proposals.
  const forbidden = policyRefusal(host, turnId, tool);
  if (forbidden) return settleCall(host, call, errorResult(forbidden, "policy_refused", "denied"));
  let input: string;
  try {
    input = takeText(tool.inputOf(call.gate?.arguments ?? null), `what input() of the subagent "${tool.name}" gave`);
  } catch (error) {
    const stored = storedErrorOf(error);
    return settleCall(host, call, { outcome: "error", text: `Error: ${stored.message}`, error: stored });
  }
  const outcome = await host.proposeSpawn({ turnId, step, callId, key: callId, tool, input });
  if (outcome.granted) return faultPoint("child.intent");
  // An interrupt that came with the refusal has given the call its one result.
  if (outcome.entry.reason === "paused" || signal.aborted) return;
  const { limit, accountId } = outcome.entry;
  const why = limit && accountId ? signalOfLimit(limit, accountId, outcome.entry).message : "the agent was aborted";
  settleCall(host, call, errorResult(`No subagent was started: ${why}.`, "refused", "interrupted"));
}

/** Why the policy forbids another child, in words; undefined when it does not (row S8). */
export function policyRefusal(
  host: Host,
  turnId: string,
  tool: Pick<SubagentTool, "definition" | "policy" | "background">,
): string | undefined {
  const { policy, definition } = tool;
  const depth = host.identity.depth + 1;
  const maxDepth = Math.min(host.identity.maxDepth, policy.maxDepth ?? DEFAULT_MAX_DEPTH);
  if (depth > maxDepth) return `A subagent here would be at depth ${depth}; the policy allows ${maxDepth}.`;
  const { maxConcurrent } = policy;
  if (tool.background && maxConcurrent !== undefined) {
    // Calls of one round are begun before the first of them is granted.
    const coming = host
      .undelivered()
      .filter((entry) => entry.type === "child.spawned" && entry.definition.name === definition.name);
    const running = coming.length + host.background.running().filter(({ name }) => name === definition.name).length;
    if (running >= maxConcurrent) {
      return `${running} subagents "${definition.name}" work in the background already; the policy allows ${maxConcurrent} at a time. Wait for one with subagent_wait, or end one with subagent_cancel.`;
    }
  }
  if (policy.maxChildren === undefined) return undefined;
  const spawned = spawnedOf(host, turnId, definition.name).length;
  if (spawned < policy.maxChildren) return undefined;
  return `This turn has started ${spawned} subagents "${definition.name}"; the policy allows ${policy.maxChildren}.`;
}

/**
 * Children of one definition that the turn has started, those that are just being asked for included: calls of one round
 * are begun before the first is granted.
 */
function spawnedOf(host: Host, turnId: string, definition: string): string[] {
  return [...host.memory(turnId).entries, ...host.undelivered()].flatMap((entry) =>
    entry.type === "child.spawned" && entry.turnId === turnId && entry.definition.name === definition
      ? [entry.childId]
      : [],
  );
}

/** Those of them that have not ended. */
function atWorkOf(host: Host, turnId: string, { definition }: SubagentTool): string[] {
  const spawned = spawnedOf(host, turnId, definition.name);
  if (spawned.length === 0) return spawned;
  const ended = new Set<string>();
  for (const entry of [...host.memory(turnId).entries, ...host.undelivered()]) {
    if (entry.type === "child.ended") ended.add(entry.childId);
  }
  return spawned.filter((childId) => !ended.has(childId));
}
