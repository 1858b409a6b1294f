import { abortable, backoffDelay, combineSignals, faultPoint } from "../base/index.ts";
import { AgentStopError, ToolNotStartedError } from "../errors/index.ts";
import { type CallState, signalOfLimit } from "../state/index.ts";
import { type Reconciliation, revocable, type Tool } from "../tools/index.ts";
import { storedErrorOf } from "./effect.ts";
import type { Host } from "./host.ts";
import { type CallResult, errorResult, resultOfOutput, settleCall, unknownResult } from "./settle-call.ts";
import { runContextOf } from "./tool-run.ts";
import { until } from "./until.ts";

/** Runs a function tool: slot, intent, body, result; attempts again where its effect class allows it (design, Tool effects). */
export async function runTool(host: Host, call: CallState, tool: Tool<never>, signal: AbortSignal): Promise<void> {
  const { turnId, callId } = call;
  const leftOpen = call.startedEpoch !== null && call.startedEpoch < host.epoch;
  if (leftOpen && tool.effect === "once") {
    const known = await reconcile(host, call, tool, "its process ended while it ran", signal);
    if (!signal.aborted) settleCall(host, call, known);
    return;
  }
  if (call.retryAt !== null) await until(host, call.retryAt, signal);
  for (;;) {
    const current = host.call(turnId, callId);
    if (!current || current.outcome !== null || signal.aborted) return;
    const release = tool.concurrency ? await host.slots(tool.name, tool.concurrency).acquire(signal) : undefined;
    try {
      if (!(await start(host, current, tool))) return;
      const result = await attempt(host, host.call(turnId, callId) ?? current, tool, signal);
      if (signal.aborted) return;
      if (result !== "again") return settleCall(host, host.call(turnId, callId) ?? current, result);
    } finally {
      release?.();
    }
    const retryAt = host.call(turnId, callId)?.retryAt;
    if (retryAt) await until(host, retryAt, signal);
  }
}

/** Commits the intent; false when it was refused. */
async function start(host: Host, call: CallState, tool: Tool<never>): Promise<boolean> {
  const { turnId, step, callId, name } = call;
  const turn = host.turn(turnId);
  if (!turn) return false;
  const outcome = await host.propose({
    type: "tool.started",
    turnId,
    step,
    callId,
    name,
    attempt: call.attempt + 1,
    effect: tool.effect,
    idempotencyKey: callId,
    accountId: turn.accountId,
  });
  if (outcome.granted) {
    faultPoint("tool.intent");
    return true;
  }
  const { reason, limit, accountId } = outcome.entry;
  if (reason === "paused") return false;
  const why = limit && accountId ? signalOfLimit(limit, accountId).message : "the agent was aborted";
  settleCall(host, call, errorResult(`The tool was not run: ${why}.`, "refused", "interrupted"));
  return false;
}

async function attempt(
  host: Host,
  call: CallState,
  tool: Tool<never>,
  signal: AbortSignal,
): Promise<CallResult | "again"> {
  const timed = combineSignals([signal]);
  const cancel = host.clock.setTimer(host.clock.now() + tool.timeoutMs, () => {
    timed.abort(new Error(`the tool did not end within ${tool.timeoutMs} ms`));
  });
  const run = revocable(runContextOf(host, call, timed.signal));
  try {
    const args = tool.fromJournal(call.gate?.arguments ?? null) as never;
    const output = await abortable(Promise.resolve(tool.execute(args, run.run)), timed.signal);
    faultPoint("tool.effect");
    return resultOfOutput(host, call, output, tool.maxOutputCharacters);
  } catch (error) {
    if (signal.aborted) return "again";
    return await failed(host, call, tool, error, signal);
  } finally {
    run.revoke();
    cancel();
    timed.dispose();
  }
}

async function failed(
  host: Host,
  call: CallState,
  tool: Tool<never>,
  error: unknown,
  signal: AbortSignal,
): Promise<CallResult | "again"> {
  const stored = storedErrorOf(error);
  if (error instanceof AgentStopError) {
    const { turnId, name } = call;
    host.append({
      type: "stop.signalled",
      turnId,
      signal: { reason: "stop_requested", message: error.message, source: `tool:${name}` },
    });
    return { outcome: "success", text: `The tool stopped the run: ${error.message}` };
  }
  if (tool.effect === "once") {
    if (error instanceof ToolNotStartedError)
      return { outcome: "error", text: `Error: ${stored.message}`, error: stored };
    return await reconcile(host, call, tool, stored.message, signal);
  }
  if (call.attempt < tool.maxAttempts) {
    const { turnId, step, callId } = call;
    const retryAt = host.clock.now() + backoffDelay(call.attempt, host.random());
    host.append({ type: "tool.retrying", turnId, step, callId, attempt: call.attempt, error: stored, retryAt });
    return "again";
  }
  return { outcome: "error", text: `Error: ${stored.message}`, error: stored };
}

/** Asks a `once` tool whether it took effect after all; without an answer the outcome stays unknown. */
async function reconcile(
  host: Host,
  call: CallState,
  tool: Tool<never>,
  why: string,
  signal: AbortSignal,
): Promise<CallResult> {
  if (!tool.reconcile) return unknownResult(call.name, why);
  await host.committed();
  const run = revocable(runContextOf(host, call, signal));
  let answer: Reconciliation;
  try {
    answer = await tool.reconcile(tool.fromJournal(call.gate?.arguments ?? null) as never, run.run);
  } catch (error) {
    return unknownResult(
      call.name,
      `${why}; asking whether it took effect failed too: ${storedErrorOf(error).message}`,
    );
  } finally {
    run.revoke();
  }
  if ("unknown" in answer) return unknownResult(call.name, why);
  if (answer.done) return resultOfOutput(host, call, answer.result, tool.maxOutputCharacters);
  return errorResult(`Error: ${why}. It is known not to have taken effect.`, "not_done");
}
