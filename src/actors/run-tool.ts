import {
  abortable,
  backoffDelay,
  type Clock,
  combineSignals,
  describeValue,
  faultPoint,
  readableThrown,
  type TraceHeaders,
  withinTrace,
  workingOn,
} from "../base/index.ts";
import { AgentStopError, InvalidInputError, OutcomeUnknownError, ToolNotStartedError } from "../errors/index.ts";
import { type CallState, foldCall, type StopSignal, type StoredError } from "../state/index.ts";
import {
  AskedRequest,
  type AskInput,
  AwaitedChild,
  nothingToRedact,
  type Reconciliation,
  type Redact,
  redactError,
  type RenderedOutput,
  renderOutput,
  revocable,
  type RunContext,
  type Tool,
} from "../tools/index.ts";
import { until } from "./effect.ts";
import { guardedResult, guardsResults, ownResultRun } from "./guards.ts";
import type { Host } from "./host.ts";
import { openRequest } from "./open-request.ts";
import { runContextOf } from "./run-context.ts";
import { isRefusedCall, stopSignalOf, storedErrorOf } from "./stored-error.ts";
import { debugError } from "./user-errors.ts";
import { awaitChild } from "./subagent-calls.ts";
import { type CallResult, errorResult, resultOfOutput, settleCall, startCall, unknownResult } from "./tool-calls.ts";

/**
 * How many times the process may die while a call runs before the call ends with an error: a tool that kills its process would
 * otherwise kill one process after another. Attempts that noted progress are not counted.
 */
const MOST_DEATHS = 5;

/**
 * Runs a function tool: slot, intent, body, result, and further attempts if its effect class allows them (docs/tools.md). For a
 * tool with a queue this function ends with the intent: once that is granted, the call waits for a worker.
 */
export async function runTool(host: Host, call: CallState, tool: Tool<never>, signal: AbortSignal): Promise<void> {
  const leftOpen = call.startedEpoch !== null && call.startedEpoch < host.epoch;
  let takesUp = leftOpen && host.inFlight.has(attemptKeyOf(call.callId, call.attempt));
  if (leftOpen && !takesUp && isOnce(tool, call)) {
    if (tool.reconcile) await host.committed();
    const known = await reconciled(dependenciesOf(host, call), call, tool, "its process ended while it ran", signal);
    if (signal.aborted) return;
    if (known !== "resume") {
      const result = await guardedResult(resultRunOf(host, call, tool, signal), call, known);
      return signal.aborted ? undefined : settleCall(host, call, result);
    }
  }
  if (leftOpen && !takesUp && call.note === null && call.attempt >= tool.maxAttempts - 1 + MOST_DEATHS) {
    const text = `Error: ${call.name} is not run again: its process ended each time while it ran (${call.attempt} attempts).`;
    settleCall(host, call, errorResult(text, "process_ended"));
    return;
  }
  // For a retry, the queue delays the job.
  if (tool.queue !== undefined && !takesUp) return void (await start(host, call, tool, signal));
  let current = call;
  for (;;) {
    if (current.retryAt !== null) await until(host, current.retryAt, signal);
    const release = tool.concurrency ? await host.slots(tool.name, tool.concurrency).acquire(signal) : undefined;
    try {
      const started = takesUp ? current : await start(host, current, tool, signal);
      if (!started || signal.aborted) return;
      takesUp = false;
      const end = await guardedEnd(host, started, tool, await attempt(host, started, tool, signal), signal);
      if (signal.aborted) return;
      const next = await takeEnd(host, started, end, signal);
      if (!next) return;
      current = next;
    } finally {
      release?.();
    }
  }
}

function dependenciesOf(host: Host, call: CallState): AttemptDependencies {
  return {
    clock: host.clock,
    redact: (text) => host.redactorOf(call.turnId)(text),
    contextOf: (signal) => runContextOf(host, call, signal),
    trace: host.traceOf(call.turnId, call.callId),
  };
}

function resultRunOf(host: Host, call: CallState, tool: Tool<never>, signal: AbortSignal) {
  return ownResultRun(host, call, signal, tool.maxOutputCharacters);
}

/** The end of an attempt with its result as the guards let it pass. */
async function guardedEnd(
  host: Host,
  call: CallState,
  tool: Tool<never>,
  end: AttemptEnd,
  signal: AbortSignal,
): Promise<AttemptEnd> {
  if (end.type !== "settled" || signal.aborted || !guardsResults(host)) return end;
  return { ...end, result: await guardedResult(resultRunOf(host, call, tool, signal), call, end.result) };
}

/** Journals the end of an attempt. Returns the call before its next attempt; `undefined` if there is none. */
async function takeEnd(
  host: Host,
  call: CallState,
  end: AttemptEnd,
  signal: AbortSignal,
): Promise<CallState | undefined> {
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
    const guarded = guardsResults(host) ? await guardedResult(ownResultRun(host, call, signal), call, result) : result;
    if (signal.aborted) return undefined;
    settleCall(host, call, guarded);
    faultPoint("tool.result");
    return undefined;
  }
  if (end.type === "asking") {
    const { arguments: about, ...question } = end.question;
    openRequest(host, call, { ...question, asked: { arguments: about } });
    return undefined;
  }
  if (end.stop) host.append({ type: "stop.signalled", turnId, signal: end.stop });
  // An immediate stop has settled every open call.
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

/** The key of an attempt in flight. */
export function attemptKeyOf(callId: string, attempt: number): string {
  return `${callId}#${attempt}`;
}

async function attempt(host: Host, call: CallState, tool: Tool<never>, signal: AbortSignal): Promise<AttemptEnd> {
  const dependencies = dependenciesOf(host, call);
  try {
    const output = await host.inFlight.run(
      attemptKeyOf(call.callId, call.attempt),
      signal,
      (callSignal) => executeTool(dependencies, call, tool, callSignal),
      !isOnce(tool, call),
    );
    faultPoint("tool.effect");
    return endOfOutput(dependencies, call, tool, output);
  } catch (error) {
    if (signal.aborted) throw error;
    if (tool.reconcile) await host.committed();
    // With the notes of this attempt.
    const latest = host.call(call.turnId, call.callId) ?? call;
    return await endOfError(dependenciesOf(host, latest), call, tool, error, signal);
  }
}

/**
 * The process in which a tool's code runs: the one that owns its agent, or a worker of its queue. Both run it by the same rules,
 * and handle the outcome differently.
 */
export interface AttemptDependencies {
  readonly clock: Clock;
  /** Redacts the credentials passed to the tool, and secrets of the environment, in a text. */
  readonly redact: Redact;
  readonly contextOf: (signal: AbortSignal) => RunContext;
  /** The parent span for spans of the tool's code; absent if the caller already runs under it. */
  readonly trace?: TraceHeaders | undefined;
}

/** The outcome of one attempt. */
export type AttemptEnd =
  | { readonly type: "settled"; readonly result: CallResult; readonly stop?: StopSignal | undefined }
  /** The attempt failed and may be repeated. */
  | { readonly type: "retrying"; readonly error: StoredError }
  /** A child will provide the result. */
  | { readonly type: "awaiting"; readonly child: AwaitedChild }
  /** The call continues when its request is decided. */
  | { readonly type: "asking"; readonly question: AskInput };

/** The return value of a tool's code. */
type ToolOutput = RenderedOutput | AwaitedChild | AskedRequest;

/** A call gated as `once` stays `once`, even if a newer program declares the tool repeatable. */
export function isOnce(tool: Pick<Tool, "effect">, call: CallState): boolean {
  return tool.effect === "once" || call.gate?.effect === "once";
}

/** Runs the tool's code with its time-out, and revokes its run context afterwards. */
export async function executeTool(
  dependencies: AttemptDependencies,
  call: CallState,
  tool: Tool<never>,
  signal: AbortSignal,
): Promise<ToolOutput> {
  const timed = combineSignals([signal]);
  const cancel = dependencies.clock.setDelay(tool.timeoutMs, () => {
    timed.abort(new Error(`the tool did not end within ${tool.timeoutMs} ms`));
  });
  const run = revocable(call.callId, () => dependencies.contextOf(timed.signal));
  try {
    // Always awaited, so that the tool's code starts after all calls of its round have been started.
    const { args, redact: hide } = await tool.resolveArguments(call.gate?.arguments ?? null, run.run);
    const redact = hiding(dependencies, hide);
    run.redactWith(redact);
    const work = async (): Promise<unknown> => {
      try {
        const output: unknown = tool.execute(args as never, run.run);
        run.begun();
        return await output;
      } catch (error) {
        if (!isOnce(tool, call) || !run.isFirstRefusal(error)) throw error;
        throw new ToolNotStartedError(`${storedErrorOf(error).message} Nothing was done.`, { cause: error });
      }
    };
    try {
      const { clock, trace } = dependencies;
      const output = await workingOn(clock, () => abortable(withinTrace(trace, work), timed.signal));
      return shownOutput(output, redact);
    } catch (error) {
      throw redactError(error, redact);
    }
  } finally {
    run.revoke();
    cancel();
    timed.dispose();
  }
}

/** The end of an attempt whose code returned an output. */
export function endOfOutput(
  dependencies: AttemptDependencies,
  call: CallState,
  tool: Tool<never>,
  output: ToolOutput,
): AttemptEnd {
  if (output instanceof AwaitedChild) return { type: "awaiting", child: output };
  if (output instanceof AskedRequest) return { type: "asking", question: output.question };
  return { type: "settled", result: resultOfOutput(dependencies, call, output, tool.maxOutputCharacters) };
}

/** The end of an attempt whose code threw. */
export async function endOfError(
  dependencies: AttemptDependencies,
  call: CallState,
  tool: Tool<never>,
  thrown: unknown,
  signal: AbortSignal,
): Promise<AttemptEnd> {
  const error = readableThrown(thrown);
  const stored = storedErrorOf(error);
  debugError(`tool "${call.name}"`, error, dependencies.redact);
  if (error instanceof AgentStopError) {
    const stop = stopSignalOf(error, `tool:${call.name}`);
    // A tool that stops the run has done its work; a tool that was refused a model call has not.
    if (!isRefusedCall(error)) {
      const text = `The tool stopped the run: ${stored.message}`;
      return { type: "settled", result: { outcome: "success", text }, stop };
    }
    const result = isOnce(tool, call)
      ? await reconcileCall(dependencies, call, tool, stored.message, signal)
      : errorResult(`Interrupted: ${stored.message}`, "interrupted", "interrupted");
    return { type: "settled", result, stop };
  }
  if (error instanceof OutcomeUnknownError) {
    return { type: "settled", result: unknownResult(call.name, stored.message.replace(/\.$/, "")) };
  }
  const result: CallResult = { outcome: "error", text: `Error: ${stored.message}`, error: stored };
  if (isOnce(tool, call)) {
    if (error instanceof ToolNotStartedError) return { type: "settled", result };
    return { type: "settled", result: await reconcileCall(dependencies, call, tool, stored.message, signal) };
  }
  if (call.attempt < tool.maxAttempts) return { type: "retrying", error: stored };
  return { type: "settled", result };
}

/** Asks a `once` tool whether it took effect after all; if it cannot answer, the outcome stays unknown. */
export async function reconcileCall(
  dependencies: AttemptDependencies,
  call: CallState,
  tool: Tool<never>,
  why: string,
  signal: AbortSignal,
): Promise<CallResult> {
  const known = await reconciled(dependencies, call, tool, why, signal);
  return known === "resume" ? unknownResult(call.name, why) : known;
}

/** As `reconcileCall`; `resume` if the tool's code can continue the call from its note. */
async function reconciled(
  dependencies: AttemptDependencies,
  call: CallState,
  tool: Tool<never>,
  why: string,
  signal: AbortSignal,
): Promise<CallResult | "resume"> {
  if (!tool.reconcile) return unknownResult(call.name, why);
  const run = revocable(call.callId, () => dependencies.contextOf(signal));
  let answer: Reconciliation;
  let hide = asItIs;
  try {
    const { args, redact } = await tool.resolveArguments(call.gate?.arguments ?? null, run.run);
    hide = hiding(dependencies, redact);
    run.redactWith(hide);
    answer = reconciliationOf(await abortable(tool.reconcile(args as never, run.run), signal));
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
  if ("resume" in answer) return "resume";
  if (answer.done)
    return resultOfOutput(dependencies, call, renderOutput(answer.result, hide), tool.maxOutputCharacters);
  return errorResult(`Error: ${why}. It is known not to have taken effect.`, "not_done");
}

/**
 * The answer of `reconcile`; each field is read once. Throws `InvalidInputError` for any other value: the outcome stays unknown.
 */
function reconciliationOf(answer: unknown): Reconciliation {
  if (typeof answer === "object" && answer !== null) {
    const { unknown, resume, done, result } = answer as Readonly<Record<string, unknown>>;
    if (unknown === true) return { unknown };
    if (resume === true) return { resume };
    if (done === true) return { done, result };
    if (done === false) return { done };
  }
  const right = "{ done: true, result }, { done: false }, { resume: true } or { unknown: true }";
  throw new InvalidInputError(`reconcile returned ${describeValue(answer)}; expected ${right}`);
}

const asItIs: Redact = (text) => text;

/** Redacts the tool's own secrets and those of the runtime in a text. */
function hiding({ redact: known }: AttemptDependencies, redact: Redact): Redact {
  if (redact === nothingToRedact) return known;
  return (text) => known(redact(text));
}

/** The tool's output as text, without the secrets passed to it. */
function shownOutput(value: unknown, redact: Redact): ToolOutput {
  if (value instanceof AskedRequest) return value;
  return value instanceof AwaitedChild ? awaitedOf(value) : renderOutput(value, redact);
}

/** The class is public, so an instance that `run.await()` did not create may contain anything. */
function awaitedOf({ childId, prefix }: AwaitedChild): AwaitedChild {
  const isText = typeof childId === "string" && (prefix === undefined || typeof prefix === "string");
  if (isText) return new AwaitedChild(childId, prefix);
  const given = `{ childId: ${describeValue(childId)}, prefix: ${describeValue(prefix)} }`;
  throw new InvalidInputError(`the tool returned an AwaitedChild of ${given}; return the result of run.await(child)`);
}
