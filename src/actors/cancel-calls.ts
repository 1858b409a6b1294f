import { combineSignals } from "../base/index.ts";
import type { CallState } from "../state/index.ts";
import { revocable, type Tool } from "../tools/index.ts";
import { isHeldBack } from "./fork-rule.ts";
import { appendWarnings, type Host } from "./host.ts";
import { runContextOf } from "./run-context.ts";
import { storedErrorOf } from "./stored-error.ts";
import { isStubbed } from "./stub-rule.ts";
import { grantedTool } from "./tool-calls.ts";

/** How long the end of a turn waits for the tools' `cancel`, in milliseconds. */
const CANCEL_MS = 5_000;

export interface BegunCall {
  readonly call: CallState;
  readonly tool: Tool<never>;
}

/** Open calls that have started external work which their tool can cancel. Only calls with a note have. */
export function begunCalls(host: Host, turnId: string): BegunCall[] {
  return (host.turn(turnId)?.openCallIds ?? []).flatMap((callId) => begunCall(host, turnId, callId) ?? []);
}

/**
 * Cancels the external work of these calls in parallel, because the turn ends. A failure becomes a warning: the turn ends anyway.
 */
export async function cancelCalls(host: Host, begun: readonly BegunCall[], interrupted: AbortSignal): Promise<void> {
  const [first] = begun;
  if (!first) return;
  await host.committed();
  const failures = await Promise.all(begun.map(async (one) => await cancelled(host, one, interrupted)));
  if (interrupted.aborted) return;
  for (const message of failures) {
    if (message !== undefined) appendWarnings(host, first.call.turnId, [{ code: "not_cancelled", message }]);
  }
}

function begunCall(host: Host, turnId: string, callId: string): BegunCall | undefined {
  const call = host.call(turnId, callId);
  if (!call || call.outcome !== null || call.note === null) return undefined;
  const tool = grantedTool(host, turnId, call.name);
  if (tool?.kind !== "function" || !tool.cancel) return undefined;
  if (isHeldBack(host, tool, call.gate) || isStubbed(host.identity, tool)) return undefined;
  return { call, tool };
}

/** The reason of a failure; `undefined` if the cancellation succeeded. */
async function cancelled(host: Host, { call, tool }: BegunCall, interrupted: AbortSignal): Promise<string | undefined> {
  try {
    await host.inFlight.run(
      `${call.callId}:cancel`,
      interrupted,
      async (signal) => await cancel(host, call, tool, signal),
    );
    return undefined;
  } catch (error) {
    const why = host.redactorOf(call.turnId)(storedErrorOf(error).message);
    return `work started by the call of "${call.name}" may continue: ${why}`;
  }
}

async function cancel(host: Host, call: CallState, tool: Tool<never>, signal: AbortSignal): Promise<void> {
  const timed = combineSignals([signal]);
  const { promise: late, reject } = Promise.withResolvers<never>();
  const stop = host.clock.setDelay(CANCEL_MS, () => {
    const error = new Error(`cancelling it took more than ${CANCEL_MS} ms`);
    timed.abort(error);
    reject(error);
  });
  const lent = revocable(call.callId, () => runContextOf(host, call, timed.signal));
  try {
    const { args, redact } = await tool.resolveArguments(call.gate?.arguments ?? null, lent.run);
    lent.redactWith((text) => host.redactorOf(call.turnId)(redact(text)));
    await Promise.race([tool.cancel?.(args as never, lent.run), late]);
  } finally {
    lent.revoke();
    stop();
    timed.dispose();
  }
}
