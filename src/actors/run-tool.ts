import { backoffDelay, faultPoint } from "../base/index.ts";
import { type CallState, type EntryOf, foldCall } from "../state/index.ts";
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
import { refusedResult, settleCall } from "./settle-call.ts";
import { awaitChild } from "./subagent-calls.ts";

/**
 * Runs a function tool: slot, intent, body, result; further attempts where its effect class allows them (design, Tool effects).
 * A tool with a queue ends here with its intent: when that is granted, the call waits for a worker.
 */
export async function runTool(host: Host, call: CallState, tool: Tool<never>, signal: AbortSignal): Promise<void> {
  const leftOpen = call.startedEpoch !== null && call.startedEpoch < host.epoch;
  let takesUp = leftOpen && host.inFlight.has(attemptKeyOf(call.callId, call.attempt));
  if (leftOpen && !takesUp && isOnce(tool, call)) {
    if (tool.reconcile) await host.committed();
    const known = await reconcileCall(placeOf(host, call), call, tool, "its process ended while it ran", signal);
    if (!signal.aborted) settleCall(host, call, known);
    return;
  }
  // For a retry, the queue keeps the job until its time.
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

/** Journals the end of an attempt. Gives the call as it is before its next attempt; undefined when there is none. */
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
  // A stop that cuts has settled every open call.
  if (signal.aborted) return undefined;
  settleCall(host, call, end.result);
  faultPoint("tool.result");
  return undefined;
}

async function start(
  host: Host,
  call: CallState,
  tool: Tool<never>,
  signal: AbortSignal,
): Promise<CallState | undefined> {
  const { queue, priority } = tool;
  const job = queue === undefined ? {} : { queue, ...(priority === undefined ? {} : { priority }) };
  const effect = isOnce(tool, call) ? "once" : tool.effect;
  const started = await startCall(host, call, { effect, ...job }, signal);
  if (started) faultPoint("tool.intent");
  return started;
}

/** Commits the intent to begin an attempt. Gives the call as it is then; undefined when the intent was refused. */
export async function startCall(
  host: Host,
  call: CallState,
  begun: Pick<EntryOf<"tool.started">, "effect" | "queue" | "priority">,
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
    idempotencyKey: callId,
    accountId: turn.accountId,
    ...begun,
  });
  if (outcome.granted) return foldCall(call, outcome.entry);
  // An interrupt that came with the refusal has settled the call.
  if (outcome.entry.reason === "paused" || signal.aborted) return undefined;
  settleCall(host, call, refusedResult("The tool was not run", outcome.entry));
  return undefined;
}

/** The key under which one attempt is in flight. */
export function attemptKeyOf(callId: string, attempt: number): string {
  return `${callId}#${attempt}`;
}

async function attempt(host: Host, call: CallState, tool: Tool<never>, signal: AbortSignal): Promise<AttemptEnd> {
  const place = placeOf(host, call);
  try {
    const output = await host.inFlight.run(
      attemptKeyOf(call.callId, call.attempt),
      signal,
      (callSignal) => executeTool(place, call, tool, callSignal),
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
