import { backoffDelay, faultPoint } from "../base/index.ts";
import { type CallState, foldCall, signalOfLimit } from "../state/index.ts";
import type { Tool } from "../tools/index.ts";
import {
  type AttemptEnd,
  type AttemptPlace,
  endOfError,
  endOfOutput,
  executeTool,
  isOnce,
  reconcileCall,
} from "./attempt-tool.ts";
import { until } from "./effect.ts";
import type { Host } from "./host.ts";
import { runContextOf } from "./run-context.ts";
import { errorResult, settleCall } from "./settle-call.ts";
import { awaitChild } from "./subagent-calls.ts";

/**
 * Runs a function tool: slot, intent, body, result; attempts again where its effect class allows it (design, Tool effects).
 * Of one with a queue there is the intent alone: granted, the call waits for whoever works on the queue.
 */
export async function runTool(host: Host, call: CallState, tool: Tool<never>, signal: AbortSignal): Promise<void> {
  const leftOpen = call.startedEpoch !== null && call.startedEpoch < host.epoch;
  let takesUp = leftOpen && host.world.has(worldKeyOf(call.callId, call.attempt));
  if (leftOpen && !takesUp && isOnce(tool, call)) {
    if (tool.reconcile) await host.committed();
    const known = await reconcileCall(placeOf(host, call), call, tool, "its process ended while it ran", signal);
    if (!signal.aborted) settleCall(host, call, known);
    return;
  }
  // The queue keeps it until it is time.
  if (tool.queue !== undefined && !takesUp) return void (await start(host, call, tool, signal));
  let current = call;
  for (;;) {
    if (current.retryAt !== null) await until(host, current.retryAt, signal);
    const release = tool.concurrency ? await host.slots(tool.name, tool.concurrency).acquire(signal) : undefined;
    try {
      const started = takesUp ? current : await start(host, current, tool, signal);
      if (!started || signal.aborted) return;
      takesUp = false;
      const end = await attempt(host, started, tool, signal);
      if (signal.aborted) return;
      const next = takeEnd(host, started, end, signal);
      if (!next) return;
      current = next;
    } finally {
      release?.();
    }
  }
}

function placeOf(host: Host, call: CallState): AttemptPlace {
  return {
    clock: host.clock,
    redact: (text) => host.redactorOf(call.turnId)(text),
    contextOf: (signal) => runContextOf(host, call, signal),
    trace: host.traceOf(call.turnId, call.callId),
  };
}

/** Journals how an attempt has ended; gives the call as it stands before the next one, where there is one. */
function takeEnd(host: Host, call: CallState, end: AttemptEnd, signal: AbortSignal): CallState | undefined {
  const { turnId, step, callId } = call;
  if (end.type === "retrying") {
    const { attempt } = call;
    const retryAt = host.clock.now() + backoffDelay(attempt, host.random());
    return foldCall(
      call,
      host.append({ type: "tool.retrying", turnId, step, callId, attempt, error: end.error, retryAt }),
    );
  }
  if (end.type === "awaiting") {
    const result = awaitChild(host, call, end.child);
    faultPoint("child.awaited");
    if (!result) return undefined;
    settleCall(host, call, result);
    faultPoint("tool.result");
    return undefined;
  }
  if (end.stop) host.append({ type: "stop.signalled", turnId, signal: end.stop });
  // A stop that cuts gives every open call its outcome.
  if (signal.aborted) return undefined;
  settleCall(host, call, end.result);
  faultPoint("tool.result");
  return undefined;
}

/** Commits the intent and gives the call as it then stands; undefined when it was refused. */
async function start(
  host: Host,
  call: CallState,
  tool: Tool<never>,
  signal: AbortSignal,
): Promise<CallState | undefined> {
  const { turnId, step, callId, name } = call;
  const turn = host.turn(turnId);
  if (!turn) return undefined;
  const outcome = await host.propose({
    type: "tool.started",
    turnId,
    step,
    callId,
    name,
    attempt: call.attempt + 1,
    effect: isOnce(tool, call) ? "once" : tool.effect,
    idempotencyKey: callId,
    accountId: turn.accountId,
    ...(tool.queue === undefined ? {} : { queue: tool.queue }),
    ...(tool.queue === undefined || tool.priority === undefined ? {} : { priority: tool.priority }),
  });
  if (outcome.granted) {
    faultPoint("tool.intent");
    return foldCall(call, outcome.entry);
  }
  const { reason, limit, accountId } = outcome.entry;
  // An interrupt that came with the refusal has given the call its one result.
  if (reason === "paused" || signal.aborted) return undefined;
  const why = limit && accountId ? signalOfLimit(limit, accountId, outcome.entry).message : "the agent was aborted";
  settleCall(host, call, errorResult(`The tool was not run: ${why}.`, "refused", "interrupted"));
  return undefined;
}

/** One attempt is out in the world under this key. */
export function worldKeyOf(callId: string, attempt: number): string {
  return `${callId}#${attempt}`;
}

async function attempt(host: Host, call: CallState, tool: Tool<never>, signal: AbortSignal): Promise<AttemptEnd> {
  const place = placeOf(host, call);
  try {
    const output = await host.world.run(
      worldKeyOf(call.callId, call.attempt),
      signal,
      (worldSignal) => executeTool(place, call, tool, worldSignal),
      !isOnce(tool, call),
    );
    faultPoint("tool.effect");
    return endOfOutput(place, call, tool, output);
  } catch (error) {
    if (signal.aborted) throw error;
    if (tool.reconcile) await host.committed();
    return await endOfError(place, call, tool, error, signal);
  }
}
