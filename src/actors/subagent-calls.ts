import { spawnLimitOf, type SubagentTool } from "../agents/index.ts";
import { abortable, describeValue, faultPoint } from "../base/index.ts";
import { type CallState, childrenAtWork, type EntryOf, type OrderedSpawn, takeText } from "../state/index.ts";
import { AwaitedChild } from "../tools/index.ts";
import { entriesOf, isSpawned, policyRefusal } from "./child-rules.ts";
import { callEffect } from "./effect.ts";
import { guardedResult, guardsResults, ownResultRun } from "./guards.ts";
import type { ChildEnd, Host } from "./host.ts";
import { storedErrorOf } from "./stored-error.ts";
import { type CallResult, errorResult, refusedResult, settleCall } from "./tool-calls.ts";

/** Proposes the child of a call. Once it is granted, the call awaits the child and this effect ends. */
export async function spawnSubagent(
  host: Host,
  call: CallState,
  tool: SubagentTool,
  signal: AbortSignal,
): Promise<void> {
  const { turnId, step, callId } = call;
  const most = spawnLimitOf(tool);
  // An entry frees a slot: the end of a child, or the refusal of a proposed one.
  while (most && childrenAtWork(entriesOf(host, turnId), most.childName).length >= most.maxConcurrent) {
    await abortable(host.moved(), signal);
  }
  // The entry that frees a slot and the stop that settles the call may arrive together.
  if (signal.aborted) return;
  // There must be no await between this check and the proposal: calls of one round see each other's proposals.
  const forbidden = policyRefusal(host, turnId, tool);
  if (forbidden) return settleCall(host, call, errorResult(forbidden, "policy_refused", "denied"));
  let input: string;
  try {
    input = takeText(
      tool.inputOf(call.gate?.arguments ?? null),
      `the result of input() of the subagent "${tool.name}"`,
    );
  } catch (error) {
    const stored = storedErrorOf(error);
    return settleCall(host, call, { outcome: "error", text: `Error: ${stored.message}`, error: stored });
  }
  const outcome = await host.proposeSpawn({ turnId, step, callId, key: callId, tool, input });
  if (outcome.granted) return faultPoint("child.intent");
  // An interrupt that arrived with the refusal has settled the call.
  if (outcome.entry.reason === "paused" || signal.aborted) return;
  settleCall(host, call, refusedResult("No subagent was started", outcome.entry));
}

/**
 * Spawns the children that a queued tool has ordered, as its own code would have done; then the call waits for the child that
 * provides its result. Repeating it spawns nothing twice, because the children's ids are derived.
 */
export const spawnOrdered = callEffect("spawnOrdered", async (host, { turnId, callId }, signal) => {
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
  if (!known) return;
  const result = await guardedResult(ownResultRun(host, call, signal), call, known);
  if (!signal.aborted) settleCall(host, call, result);
});

/** `undefined` if the child is spawned, or the signal is aborted. */
async function spawnOne(
  host: Host,
  call: CallState,
  { key, childId, definition: name, input, limits, history }: OrderedSpawn,
  signal: AbortSignal,
): Promise<CallResult | undefined> {
  const { turnId, step, callId } = call;
  const definition = host.definitions.get(name);
  if (!definition) {
    const text = `No subagent was started: the agent's runtime does not know the definition "${name}". Add it to createRuntime({ agents: [...] }).`;
    return errorResult(text, "definition_unknown");
  }
  const tool = { definition, limits, policy: {}, background: null, ...(history ? { history } : {}) };
  for (;;) {
    if (signal.aborted) return undefined;
    const forbidden = isSpawned(host, turnId, childId) ? undefined : policyRefusal(host, turnId, tool);
    if (forbidden) return errorResult(forbidden, "policy_refused", "denied");
    const outcome = await host.proposeSpawn({ turnId, step, callId: null, key: `${callId}:${key}`, tool, input });
    if (outcome.granted || signal.aborted) return undefined;
    const { reason } = outcome.entry;
    if (reason !== "paused" && reason !== "mustWait") return refusedResult("No subagent was started", outcome.entry);
    await host.freed(outcome.entry, callId);
  }
}

/** The result of the child that the tool awaits instead of returning a result; `undefined` if the call now waits for it. */
export function awaitChild(
  host: Host,
  { turnId, step, callId }: CallState,
  { childId, prefix }: AwaitedChild,
): CallResult | undefined {
  const entries = entriesOf(host, turnId);
  // The class is public, so the id may be any value: an unknown child would never end.
  if (!isSpawned(host, turnId, childId)) {
    const text = `Error: the tool left its result to ${describeValue(childId)}, which is not a subagent of this turn.`;
    return errorResult(text, "child_unknown");
  }
  const ended = entries.find(
    (entry): entry is EntryOf<"child.ended"> => entry.type === "child.ended" && entry.childId === childId,
  );
  if (ended) return resultOfChild(ended, prefix);
  host.append({
    type: "child.awaited",
    turnId,
    step,
    callId,
    childId,
    ...(prefix === undefined ? {} : { prefix }),
  });
  return undefined;
}

/** The end of a child becomes its call's result; for a background child, its start does. */
export const settleChild = callEffect("settleChild", async (host, { turnId, callId }, signal) => {
  const call = host.call(turnId, callId);
  if (!call || call.outcome !== null) return;
  const given = resultOfSpawn(call) ?? (call.childResult && resultOfChild(call.childResult as ChildEnd, call.prefix));
  if (!given) return;
  const result = guardsResults(host) ? await guardedResult(ownResultRun(host, call, signal), call, given) : given;
  if (signal.aborted) return;
  settleCall(host, call, result);
  faultPoint("child.result");
});

/** The result of a call that has started a background child; `undefined` for any other call. */
export function resultOfSpawn({ childId, isBackground }: CallState): CallResult | undefined {
  if (!isBackground || childId === null) return undefined;
  const note =
    "It works in the background, and its answer will reach you by itself. Use subagent_status, subagent_wait or subagent_cancel with this id.";
  return { outcome: "success", text: JSON.stringify({ agentId: childId, note }) };
}

function resultOfChild({ outcome, stopReason, text }: ChildEnd, prefix: string | null = null): CallResult {
  const before = prefix ?? "";
  if (outcome === "completed") return { outcome: "success", text: `${before}${text}` };
  if (outcome === "stopped") {
    const note = `The subagent was stopped (${stopReason}) before it had finished. What it has: ${text}`;
    return { outcome: "success", text: `${before}${note}` };
  }
  return errorResult(`${before}The subagent failed: ${text}`, "subagent_failed");
}
