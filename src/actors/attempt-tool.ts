import {
  abortable,
  type Clock,
  combineSignals,
  describeValue,
  faultPoint,
  readableThrown,
  type TraceHeaders,
  withinTrace,
} from "../base/index.ts";
import { AgentStopError, InvalidInputError, ToolNotStartedError } from "../errors/index.ts";
import type { CallState, StopSignal, StoredError } from "../state/index.ts";
import {
  AwaitedChild,
  type Reconciliation,
  type Redact,
  redactError,
  type RenderedOutput,
  renderOutput,
  revocable,
  type RunContext,
  type Tool,
} from "../tools/index.ts";
import { type CallResult, errorResult, resultOfOutput, unknownResult } from "./settle-call.ts";
import { storedErrorOf } from "./stored-error.ts";
import { stopSignalOf } from "./stored-error.ts";

/**
 * Where a tool's code runs: in the process that has its agent, or in a worker of its queue. Both run it by the same rules, and
 * handle the outcome in their own way.
 */
export interface AttemptPlace {
  readonly clock: Clock;
  /** Removes the credentials that the tool is given, and secrets of the environment, from a text (S13). */
  readonly redact: Redact;
  contextOf(signal: AbortSignal): RunContext;
  /** The parent span of the code's own spans. */
  readonly trace: TraceHeaders | undefined;
}

/** How one attempt has ended. */
export type AttemptEnd =
  | { readonly type: "settled"; readonly result: CallResult; readonly stop?: StopSignal | undefined }
  /** It failed, and another attempt may follow. */
  | { readonly type: "retrying"; readonly error: StoredError }
  /** A child will give the result. */
  | { readonly type: "awaiting"; readonly child: AwaitedChild };

/** A call that was gated as `once` stays so, even when a newer program declares the tool repeatable. */
export function isOnce(tool: Pick<Tool, "effect">, call: CallState): boolean {
  return tool.effect === "once" || call.gate?.effect === "once";
}

/** Runs the tool's code, with its time-out; its run context is revoked afterwards (row H6). */
export async function executeTool(
  place: AttemptPlace,
  call: CallState,
  tool: Tool<never>,
  signal: AbortSignal,
): Promise<RenderedOutput | AwaitedChild> {
  const timed = combineSignals([signal]);
  const cancel = place.clock.setDelay(tool.timeoutMs, () => {
    timed.abort(new Error(`the tool did not end within ${tool.timeoutMs} ms`));
  });
  const run = revocable(place.contextOf(timed.signal));
  try {
    const { args, redact: hide } = await tool.resolveArguments(call.gate?.arguments ?? null, run.run);
    const redact = hiding(place, hide);
    run.redactWith(redact);
    const work = async (): Promise<unknown> => await tool.execute(args as never, run.run);
    return await withoutSecrets(redact, () => abortable(withinTrace(place.trace, work), timed.signal));
  } finally {
    run.revoke();
    cancel();
    timed.dispose();
  }
}

/** The end of an attempt whose code gave an output. */
export function endOfOutput(
  place: AttemptPlace,
  call: CallState,
  tool: Tool<never>,
  output: RenderedOutput | AwaitedChild,
): AttemptEnd {
  if (output instanceof AwaitedChild) return { type: "awaiting", child: output };
  return { type: "settled", result: resultOfOutput(place, call, output, tool.maxOutputCharacters) };
}

/** The end of an attempt whose code threw. */
export async function endOfError(
  place: AttemptPlace,
  call: CallState,
  tool: Tool<never>,
  thrown: unknown,
  signal: AbortSignal,
): Promise<AttemptEnd> {
  const error = readableThrown(thrown);
  const stored = storedErrorOf(error);
  if (error instanceof AgentStopError) {
    const result: CallResult = { outcome: "success", text: `The tool stopped the run: ${stored.message}` };
    return { type: "settled", result, stop: stopSignalOf(error, `tool:${call.name}`) };
  }
  const result: CallResult = { outcome: "error", text: `Error: ${stored.message}`, error: stored };
  if (isOnce(tool, call)) {
    if (error instanceof ToolNotStartedError) return { type: "settled", result };
    return { type: "settled", result: await reconcileCall(place, call, tool, stored.message, signal) };
  }
  if (call.attempt < tool.maxAttempts) return { type: "retrying", error: stored };
  return { type: "settled", result };
}

/** Asks a `once` tool whether it took effect after all; without an answer the outcome stays unknown. */
export async function reconcileCall(
  place: AttemptPlace,
  call: CallState,
  tool: Tool<never>,
  why: string,
  signal: AbortSignal,
): Promise<CallResult> {
  if (!tool.reconcile) return unknownResult(call.name, why);
  const run = revocable(place.contextOf(signal));
  let answer: Reconciliation;
  let hide = asItIs;
  try {
    const { args, redact } = await tool.resolveArguments(call.gate?.arguments ?? null, run.run);
    hide = hiding(place, redact);
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
  if (answer.done) return resultOfOutput(place, call, renderOutput(answer.result, hide), tool.maxOutputCharacters);
  return errorResult(`Error: ${why}. It is known not to have taken effect.`, "not_done");
}

/** The answer of `reconcile`, each field read once. Throws `InvalidInputError` for anything else: the outcome stays unknown. */
function reconciliationOf(answer: unknown): Reconciliation {
  if (typeof answer === "object" && answer !== null) {
    const { unknown, done, result } = answer as Readonly<Record<string, unknown>>;
    if (unknown === true) return { unknown };
    if (done === true) return { done, result };
    if (done === false) return { done };
  }
  const right = "{ done: true, result }, { done: false } or { unknown: true }";
  throw new InvalidInputError(`reconcile gave ${describeValue(answer)}; it must give ${right}`);
}

const asItIs: Redact = (text) => text;

/** Removes the tool's own secrets and the place's from a text (S13). */
function hiding({ redact: known }: AttemptPlace, redact: Redact): Redact {
  return (text) => known(redact(text));
}

/** The tool's output or error as text, without the secrets that it was called with (S13). */
async function withoutSecrets(redact: Redact, work: () => Promise<unknown>): Promise<RenderedOutput | AwaitedChild> {
  try {
    const value = await work();
    return value instanceof AwaitedChild ? awaitedOf(value) : renderOutput(value, redact);
  } catch (error) {
    throw redactError(error, redact);
  }
}

/** The class is public, so one that `run.await()` did not make may hold anything. */
function awaitedOf({ childId, prefix }: AwaitedChild): AwaitedChild {
  const isText = typeof childId === "string" && (prefix === undefined || typeof prefix === "string");
  if (isText) return new AwaitedChild(childId, prefix);
  const given = `{ childId: ${describeValue(childId)}, prefix: ${describeValue(prefix)} }`;
  throw new InvalidInputError(`the tool returned an AwaitedChild of ${given}; return what run.await(child) gives`);
}
