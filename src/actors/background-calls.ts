import { faultPoint } from "../base/index.ts";
import { type CallState, type EntryOf, type Message, type Timer } from "../state/index.ts";
import { cancelArgumentsSchema, type ControlTool, statusArgumentsSchema, waitArgumentsSchema } from "../tools/index.ts";
import { callEffect } from "./effect.ts";
import { guardedResult, ownResultRun } from "./guards.ts";
import type { BackgroundChild, ChildEnd, Host } from "./host.ts";
import { type CallResult, errorResult, settleCall, startCall } from "./tool-calls.ts";

/**
 * Runs a tool for the agent's own background subagents. It is recorded and counted as any tool call; running it again after a
 * restart is harmless.
 */
export async function runControlTool(
  host: Host,
  call: CallState,
  tool: ControlTool,
  signal: AbortSignal,
): Promise<void> {
  // If an earlier owner has started the call, this is the same attempt.
  if (call.startedEpoch === null && !(await startCall(host, call, { effect: "none" }, signal))) return;
  if (signal.aborted) return;
  const children = await host.background.list();
  if (signal.aborted) return;
  const args = call.gate?.arguments ?? {};
  switch (tool.name) {
    case "subagent_status": {
      const { agentId } = statusArgumentsSchema.parse(args);
      return settleCall(host, call, unknownChild(children, agentId) ?? statusOf(children, agentId));
    }
    case "subagent_wait":
      return await waitForReports(host, call, children, signal);
    case "subagent_cancel": {
      const result = await cancel(host, children, args);
      return signal.aborted ? undefined : settleCall(host, call, result);
    }
    default:
      tool.name satisfies never;
  }
}

function statusOf(children: readonly BackgroundChild[], asked: string | undefined): CallResult {
  const shown = children.filter(({ childId }) => asked === undefined || childId === asked);
  if (shown.length === 0) return { outcome: "success", text: "You have started no subagent in the background." };
  const lines = shown.map(({ childId, name, state, steps, tokens, costMicros, elapsedMs }) =>
    JSON.stringify({
      agentId: childId,
      name,
      state,
      step: steps,
      tokens,
      ...(costMicros > 0 ? { costDollars: costMicros / 1_000_000 } : {}),
      elapsedSeconds: Math.round(elapsedMs / 1_000),
    }),
  );
  return { outcome: "success", text: lines.join("\n") };
}

async function cancel(host: Host, children: readonly BackgroundChild[], args: unknown): Promise<CallResult> {
  const { agentId, reason = "cancelled by the agent that had started it" } = cancelArgumentsSchema.parse(args);
  const unknown = unknownChild(children, agentId);
  if (unknown) return unknown;
  const isOpen = await host.background.cancel(agentId, reason);
  const text = isOpen
    ? `The subagent ${agentId} is being ended, with all that it has started.`
    : `The subagent ${agentId} had ended already; nothing was left to cancel.`;
  return { outcome: "success", text };
}

/**
 * Makes the call wait for background children. The wait uses no memory: reports and a timer end it. The call is settled
 * immediately if the named children have already ended.
 */
async function waitForReports(
  host: Host,
  call: CallState,
  children: readonly BackgroundChild[],
  signal: AbortSignal,
): Promise<void> {
  const { agentIds, timeoutSeconds } = waitArgumentsSchema.parse(call.gate?.arguments ?? {});
  const unknown = unknownChild(children, ...(agentIds ?? []));
  if (unknown) return settleCall(host, call, unknown);
  const { turnId, step, callId } = call;
  // There must be no await between this check and `call.waiting`, so that a later report finds the call waiting.
  const running = host.background.running().map(({ childId }) => childId);
  const openIds = running.filter((childId) => agentIds === undefined || agentIds.includes(childId));
  const childIds = [...new Set(agentIds ?? running)];
  if (childIds.length === 0) {
    const text = "No subagent of yours works in the background: there is nothing to wait for.";
    return settleCall(host, call, errorResult(text, "nothing_to_wait_for"));
  }
  if (openIds.length === 0) return await settleWith(host, call, { childIds, openIds }, signal);
  const until = timeoutSeconds === undefined ? null : host.clock.now() + Math.ceil(timeoutSeconds * 1_000);
  const { tenant, agentId } = host.identity;
  const timers: Timer[] =
    until === null ? [] : [{ kind: "wait", tenant, agentId, id: waitTimerId(callId), dueAt: until, turnId, callId }];
  host.append(
    { type: "call.waiting", turnId, step, callId, childIds, openIds, for: agentIds ? "all" : "any", until },
    { timers },
  );
  faultPoint("wait.begun");
}

/** Id of the timer that ends a wait. */
export function waitTimerId(callId: string): string {
  return `wait:${callId}`;
}

/** The ends of the children, or of those that ended in time, become the call's result. */
export const settleWait = callEffect("settleWait", async (host, { turnId, callId }, signal) => {
  const call = host.call(turnId, callId);
  if (!call?.wait || call.outcome !== null) return;
  await settleWith(host, call, call.wait, signal);
  faultPoint("wait.result");
});

async function settleWith(
  host: Host,
  call: CallState,
  { childIds, openIds }: { readonly childIds: readonly string[]; readonly openIds: readonly string[] },
  signal: AbortSignal,
): Promise<void> {
  const reports = host
    .memory(call.turnId)
    .entries.filter((entry): entry is EntryOf<"child.reported"> => entry.type === "child.reported");
  const ends: [string, ChildEnd][] = [];
  for (const childId of childIds) {
    if (openIds.includes(childId)) continue;
    const end = reports.find((report) => report.childId === childId) ?? (await host.background.endOf(childId));
    if (end) ends.push([childId, end]);
  }
  if (signal.aborted) return;
  const lines = ends.map(([childId, end]) => `${childId} ${endText(end)}`);
  if (openIds.length > 0) {
    const time = ends.length === 0 ? "The time is over. " : "";
    lines.push(`${time}Still at work: ${openIds.join(", ")}.`);
  }
  // Their reports are in this result, so they are not also added as messages.
  const held = host.turn(call.turnId)?.heldMessageIds ?? [];
  const told = reports.filter(
    ({ childId, messageId }) => ends.some(([id]) => id === childId) && held.includes(messageId),
  );
  const result = { outcome: "success", text: lines.join("\n\n") } as const;
  const guarded = await guardedResult(ownResultRun(host, call, signal), call, result);
  if (signal.aborted) return;
  settleCall(host, call, guarded, {
    reports: told.map(({ messageId }) => messageId),
    clearedTimers: [waitTimerId(call.callId)],
  });
}

/** The error result for ids that do not belong to the agent's own subagents; `undefined` if all do. */
function unknownChild(
  children: readonly BackgroundChild[],
  ...asked: readonly (string | undefined)[]
): CallResult | undefined {
  const unknown = asked.filter((id) => id !== undefined && !children.some(({ childId }) => childId === id));
  if (unknown.length === 0) return undefined;
  const known =
    children.length === 0
      ? "You have started none in the background."
      : `Those that you have started in the background are: ${children.map(({ childId, name }) => `${childId} (${name})`).join(", ")}.`;
  return errorResult(`You have no subagent ${unknown.join(", ")}. ${known}`, "not_found");
}

/** A message that reports a child's end in the parent's history. */
export function reportMessage(host: Host, report: EntryOf<"child.reported">, step: number): Message {
  const { turnId, name, childId, messageId } = report;
  const place = turnId === undefined ? {} : { step_id: `${turnId}:${step}`, execution_id: turnId };
  return {
    id: messageId,
    role: "user",
    content: `The subagent "${name}" (${childId}), which you had started in the background, ${endText(report)}`,
    createdAt: host.clock.now(),
    origin: `subagent:${name}`,
    metadata: { ...place, agent_id: host.identity.agentId, is_trace: true },
  };
}

/** Id of the message that reports the end of this child's turn to the parent. */
export function reportIdOf(childTurnId: string): string {
  return `${childTurnId}:report`;
}

/** A child's outcome, as the rest of a sentence whose subject is the child. */
function endText({ outcome, stopReason, text }: ChildEnd): string {
  if (outcome === "completed") return `has ended. Its answer:\n\n${text}`;
  if (outcome === "stopped") return `was stopped (${stopReason}) before it had finished. What it has:\n\n${text}`;
  return `has failed: ${text}`;
}
