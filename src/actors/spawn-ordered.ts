import { faultPoint } from "../base/index.ts";
import { type CallState, type OrderedSpawn, signalOfLimit } from "../state/index.ts";
import { AwaitedChild } from "../tools/index.ts";
import { awaitChild } from "./await-child.ts";
import { effectActor } from "./effect.ts";
import type { Host } from "./host.ts";
import { type CallResult, errorResult, settleCall } from "./settle-call.ts";
import { policyRefusal } from "./spawn-subagent.ts";

/**
 * Spawns what a queued tool has asked for, as its own code would have; then the call waits for the child that its result was
 * left to. Begun again it spawns nothing twice: the children's ids are derived.
 */
export const spawnOrdered = effectActor<{ readonly turnId: string; readonly callId: string }>(
  "spawnOrdered",
  async (host, { turnId, callId }, signal) => {
    const call = host.call(turnId, callId);
    if (!call?.ordered || call.outcome !== null) return;
    const { spawns, awaits, prefix } = call.ordered;
    for (const spawn of spawns) {
      const refused = await spawnOne(host, call, spawn, signal);
      if (signal.aborted) return;
      if (refused) return settleCall(host, call, refused);
    }
    const known = awaitChild(host, call, new AwaitedChild(awaits, prefix ?? undefined));
    faultPoint("child.awaited");
    if (known) settleCall(host, call, known);
  },
);

/** Undefined when the child is there. */
async function spawnOne(
  host: Host,
  call: CallState,
  { key, childId, definition: name, input, limits }: OrderedSpawn,
  signal: AbortSignal,
): Promise<CallResult | undefined> {
  const { turnId, step, callId } = call;
  const definition = host.definitions.get(name);
  if (!definition) {
    const text = `No subagent was started: the definition "${name}" is not known to the runtime that has the agent. Name it in createRuntime({ agents: [...] }).`;
    return errorResult(text, "definition_unknown");
  }
  const tool = { definition, limits, policy: {}, background: null };
  for (;;) {
    const forbidden = isSpawned(host, turnId, childId) ? undefined : policyRefusal(host, turnId, tool);
    if (forbidden) return errorResult(forbidden, "policy_refused", "denied");
    const outcome = await host.proposeSpawn({ turnId, step, callId: null, key: `${callId}:${key}`, tool, input });
    if (outcome.granted || signal.aborted) return undefined;
    const { reason, limit, accountId } = outcome.entry;
    if (reason === "paused" || reason === "mustWait") {
      await host.freed(outcome.entry, callId);
      continue;
    }
    const why = limit && accountId ? signalOfLimit(limit, accountId, outcome.entry).message : "the agent was aborted";
    return errorResult(`No subagent was started: ${why}.`, "refused", "interrupted");
  }
}

function isSpawned(host: Host, turnId: string, childId: string): boolean {
  return [...host.memory(turnId).entries, ...host.undelivered()].some(
    (entry) => entry.type === "child.spawned" && entry.childId === childId,
  );
}
