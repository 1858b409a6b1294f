import type { CallState } from "../state/index.ts";
import { signalOfLimit } from "../state/index.ts";
import { cancelArgumentsSchema, type ControlTool, statusArgumentsSchema } from "../tools/index.ts";
import type { BackgroundChild, Host } from "./host.ts";
import { type CallResult, errorResult, settleCall } from "./settle-call.ts";
import { unknownChild } from "./unknown-child.ts";
import { waitForReports } from "./wait-for-reports.ts";

/**
 * Carries out a tool on the agent's own subagents in the background. It is recorded and counted as any tool call; begun
 * again after a restart it does no harm.
 */
export async function runControlTool(
  host: Host,
  call: CallState,
  tool: ControlTool,
  signal: AbortSignal,
): Promise<void> {
  if (!(await start(host, call, signal))) return;
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

async function start(host: Host, call: CallState, signal: AbortSignal): Promise<boolean> {
  const { turnId, step, callId, name } = call;
  const turn = host.turn(turnId);
  if (!turn) return false;
  // Begun by an owner that is gone: it is the same attempt.
  if (call.startedEpoch !== null) return true;
  const outcome = await host.propose({
    type: "tool.started",
    turnId,
    step,
    callId,
    name,
    attempt: call.attempt + 1,
    effect: "none",
    idempotencyKey: callId,
    accountId: turn.accountId,
  });
  if (outcome.granted) return !signal.aborted;
  const { reason, limit, accountId } = outcome.entry;
  if (reason === "paused" || signal.aborted) return false;
  const why = limit && accountId ? signalOfLimit(limit, accountId, outcome.entry).message : "the agent was aborted";
  settleCall(host, call, errorResult(`The tool was not run: ${why}.`, "refused", "interrupted"));
  return false;
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
