import { DEFAULT_MAX_DEPTH, missingGuard, type SubagentTool } from "../agents/index.ts";
import { describeValue } from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import type { Entry } from "../state/index.ts";
import { AwaitedChild, type AwaitOptions } from "../tools/index.ts";
import type { Host } from "./host.ts";

/** Why the policy forbids another child; `undefined` if it does not. */
export function policyRefusal(
  host: Host,
  turnId: string,
  tool: Pick<SubagentTool, "definition" | "policy" | "background">,
): string | undefined {
  const { policy, definition } = tool;
  const depth = host.identity.depth + 1;
  const maxDepth = Math.min(host.identity.maxDepth, policy.maxDepth ?? DEFAULT_MAX_DEPTH);
  if (depth > maxDepth) return `A subagent here would be at depth ${depth}; the policy allows ${maxDepth}.`;
  const missing = missingGuard(host.definition.guards, definition);
  if (missing !== undefined)
    return `The subagent "${definition.name}" lacks the guards "${missing}", which must hold for it.`;
  const { maxConcurrent } = policy;
  if (tool.background && maxConcurrent !== undefined) {
    // Calls of one round start before the first of them is granted.
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

/** Children of one definition that the turn has started or proposed: calls of one round start before the first is granted. */
function spawnedOf(host: Host, turnId: string, definition: string): string[] {
  return entriesOf(host, turnId).flatMap((entry) =>
    entry.type === "child.spawned" && entry.turnId === turnId && entry.definition.name === definition
      ? [entry.childId]
      : [],
  );
}

export function isSpawned(host: Host, turnId: string, childId: string): boolean {
  return entriesOf(host, turnId).some((entry) => entry.type === "child.spawned" && entry.childId === childId);
}

/** The value of `run.await(child)`. Throws `InvalidInputError` for a child that no code of this turn has spawned. */
export function awaitedChildOf(
  { host, turnId, spawned }: { readonly host: Host; readonly turnId: string; readonly spawned: ReadonlySet<string> },
  child: { readonly agentId: string },
  { prefix }: AwaitOptions = {},
): AwaitedChild {
  // Children that this run spawned through its agent's live host are not in the memory of the host under which it started.
  const isOwn =
    spawned.has(child?.agentId) ||
    entriesOf(host, turnId).some(
      (entry) => entry.type === "child.spawned" && entry.callId === undefined && entry.childId === child?.agentId,
    );
  if (isOwn) return new AwaitedChild(child.agentId, prefix);
  throw notSpawned(child, "turn");
}

/** The error for a value passed to `run.await()` that is not a child of its turn or of its queued call. */
export function notSpawned(
  child: { readonly agentId: string } | null | undefined,
  by: "turn" | "call",
): InvalidInputError {
  const agentId: unknown = child?.agentId;
  const given = typeof agentId === "string" ? `"${agentId.slice(0, 200)}"` : describeValue(child);
  return new InvalidInputError(
    `run.await() expects a child that this ${by} has started with run.spawn(), not ${given}`,
  );
}

/** Entries of the turn, including those not yet delivered to the machines. */
export function entriesOf(host: Host, turnId: string): Entry[] {
  return [...host.memory(turnId).entries, ...host.undelivered()];
}
