import { abortable, backoffDelay, combineSignals, faultPoint } from "../base/index.ts";
import { AgentStopError, ToolNotStartedError } from "../errors/index.ts";
import { type CallState, type Entry, foldCall, signalOfLimit } from "../state/index.ts";
import {
  AwaitedChild,
  type Reconciliation,
  type Redact,
  type RenderedOutput,
  redactError,
  renderOutput,
  revocable,
  type Tool,
} from "../tools/index.ts";
import { awaitChild } from "./await-child.ts";
import { storedErrorOf } from "./effect.ts";
import type { Host } from "./host.ts";
import { type CallResult, errorResult, resultOfOutput, settleCall, unknownResult } from "./settle-call.ts";
import { stopSignalOf } from "./stop-signal.ts";
import { runContextOf } from "./tool-run.ts";
import { until } from "./until.ts";

/** Runs a function tool: slot, intent, body, result; attempts again where its effect class allows it (design, Tool effects). */
export async function runTool(host: Host, call: CallState, tool: Tool<never>, signal: AbortSignal): Promise<void> {
  const leftOpen = call.startedEpoch !== null && call.startedEpoch < host.epoch;
  let takesUp = leftOpen && host.world.has(worldKeyOf(call.callId, call.attempt));
  // What was gated as `once` is not made repeatable by a program that has changed since.
  const isOnce = tool.effect === "once" || call.gate?.effect === "once";
  if (leftOpen && !takesUp && isOnce) {
    const known = await reconcile(host, call, tool, "its process ended while it ran", signal);
    if (!signal.aborted) settleCall(host, call, known);
    return;
  }
  let current = call;
  for (;;) {
    if (current.retryAt !== null) await until(host, current.retryAt, signal);
    const release = tool.concurrency ? await host.slots(tool.name, tool.concurrency).acquire(signal) : undefined;
    try {
      const started = takesUp ? current : await start(host, current, tool, signal);
      if (!started || signal.aborted) return;
      takesUp = false;
      const result = await attempt(host, started, tool, signal);
      if (signal.aborted || "isAwaiting" in result) return;
      if ("outcome" in result) {
        settleCall(host, started, result);
        faultPoint("tool.result");
        return;
      }
      current = foldCall(started, result.retrying);
    } finally {
      release?.();
    }
  }
}

/**
 * The end of one attempt: the call's result, or the entry that says when the next one may begin; or a child has the result,
 * and the call waits for it.
 */
type AttemptEnd = CallResult | { readonly retrying: Entry } | { readonly isAwaiting: true };

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
    effect: tool.effect,
    idempotencyKey: callId,
    accountId: turn.accountId,
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
  try {
    const output = await host.world.run(
      worldKeyOf(call.callId, call.attempt),
      signal,
      (worldSignal) => execute(host, call, tool, worldSignal),
      tool.effect !== "once" && call.gate?.effect !== "once",
    );
    faultPoint("tool.effect");
    if (output instanceof AwaitedChild) {
      const result = awaitChild(host, call, output) ?? ({ isAwaiting: true } as const);
      faultPoint("child.awaited");
      return result;
    }
    return resultOfOutput(host, call, output, tool.maxOutputCharacters);
  } catch (error) {
    if (signal.aborted) throw error;
    return await failed(host, call, tool, error, signal);
  }
}

/** The tool's own code, with its time-out; its run context is gone afterwards (row H6). */
async function execute(
  host: Host,
  call: CallState,
  tool: Tool<never>,
  signal: AbortSignal,
): Promise<RenderedOutput | AwaitedChild> {
  const timed = combineSignals([signal]);
  const cancel = host.clock.setDelay(tool.timeoutMs, () => {
    timed.abort(new Error(`the tool did not end within ${tool.timeoutMs} ms`));
  });
  const run = revocable(runContextOf(host, call, timed.signal));
  try {
    const { args, redact: hide } = await tool.resolveArguments(call.gate?.arguments ?? null, run.run);
    const redact = hiding(host, call, hide);
    run.redactWith(redact);
    const work = async (): Promise<unknown> => await tool.execute(args as never, run.run);
    return await withoutSecrets(redact, () => abortable(work(), timed.signal));
  } finally {
    run.revoke();
    cancel();
    timed.dispose();
  }
}

const asItIs: Redact = (text) => text;

/** The tool's own secrets, and what it was lent to work with: credentials and the environment (S13). */
function hiding(host: Host, call: CallState, redact: Redact): Redact {
  const known = host.redactorOf(call.turnId);
  return (text) => known(redact(text));
}

/** What a tool gives or throws, as text, without the secrets that it was called with (S13). */
async function withoutSecrets(redact: Redact, work: () => Promise<unknown>): Promise<RenderedOutput | AwaitedChild> {
  try {
    const value = await work();
    return value instanceof AwaitedChild ? value : renderOutput(value, redact);
  } catch (error) {
    throw redactError(error, redact);
  }
}

async function failed(
  host: Host,
  call: CallState,
  tool: Tool<never>,
  error: unknown,
  signal: AbortSignal,
): Promise<AttemptEnd> {
  const stored = storedErrorOf(error);
  if (error instanceof AgentStopError) {
    const { turnId, name } = call;
    host.append({ type: "stop.signalled", turnId, signal: stopSignalOf(error, `tool:${name}`) });
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
    const { attempt } = call;
    return { retrying: host.append({ type: "tool.retrying", turnId, step, callId, attempt, error: stored, retryAt }) };
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
  let hide = asItIs;
  try {
    const { args, redact } = await tool.resolveArguments(call.gate?.arguments ?? null, run.run);
    hide = hiding(host, call, redact);
    run.redactWith(hide);
    answer = await tool.reconcile(args as never, run.run);
  } catch (error) {
    return unknownResult(
      call.name,
      `${why}; asking whether it took effect failed too: ${hide(storedErrorOf(error).message)}`,
    );
  } finally {
    run.revoke();
  }
  faultPoint("reconcile.effect");
  if ("unknown" in answer) return unknownResult(call.name, why);
  if (answer.done) {
    return resultOfOutput(host, call, renderOutput(answer.result, hide), tool.maxOutputCharacters);
  }
  return errorResult(`Error: ${why}. It is known not to have taken effect.`, "not_done");
}
