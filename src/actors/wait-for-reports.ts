import { faultPoint } from "../base/index.ts";
import type { CallState, EntryOf, Timer } from "../state/index.ts";
import { waitArgumentsSchema } from "../tools/index.ts";
import { effectActor } from "./effect.ts";
import type { BackgroundChild, ChildEnd, Host } from "./host.ts";
import { endText } from "./report.ts";
import { errorResult, settleCall } from "./settle-call.ts";
import { unknownChild } from "./unknown-child.ts";

/** Id of the alarm that ends a wait. */
export function waitTimerId(callId: string): string {
  return `wait:${callId}`;
}

/**
 * Lets the call wait for children in the background: nothing of it stays in memory, reports and its alarm are what it goes on
 * with. It is settled at once when those that were named have ended.
 */
export async function waitForReports(
  host: Host,
  call: CallState,
  children: readonly BackgroundChild[],
  signal: AbortSignal,
): Promise<void> {
  const { agentIds, timeoutSeconds } = waitArgumentsSchema.parse(call.gate?.arguments ?? {});
  const unknown = unknownChild(children, ...(agentIds ?? []));
  if (unknown) return settleCall(host, call, unknown);
  const { turnId, step, callId } = call;
  // Nothing is awaited from here on: a report that comes later finds the call waiting.
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

/** What has come of the children, or of those that ended before the time ran out, becomes the call's result. */
export const settleWait = effectActor<{ readonly turnId: string; readonly callId: string }>(
  "settleWait",
  async (host, { turnId, callId }, signal) => {
    const call = host.call(turnId, callId);
    if (!call?.wait || call.outcome !== null) return;
    await settleWith(host, call, call.wait, signal);
    faultPoint("wait.result");
  },
);

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
  // What they said is told here, and in no message of its own.
  const held = host.turn(call.turnId)?.heldMessageIds ?? [];
  const told = reports.filter(
    ({ childId, messageId }) => ends.some(([id]) => id === childId) && held.includes(messageId),
  );
  settleCall(
    host,
    call,
    { outcome: "success", text: lines.join("\n\n") },
    { reports: told.map(({ messageId }) => messageId), clearedTimers: [waitTimerId(call.callId)] },
  );
}
