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
 * Where a tool's own code runs: in the process that has its agent, or wherever its queue is worked on. Both run it by the
 * same rules; what the outcome becomes is the place's.
 */
export interface AttemptPlace {
  readonly clock: Clock;
  /** Takes what the tool is lent out of a text: credentials, and secrets of the environment (S13). */
  readonly redact: Redact;
  contextOf(signal: AbortSignal): RunContext;
  /** The span under which what the code traces comes. */
  readonly trace: TraceHeaders | undefined;
}

/** How one attempt has ended. */
export type AttemptEnd =
  | { readonly type: "settled"; readonly result: CallResult; readonly stop?: StopSignal | undefined }
  /** It failed, and may be tried again. */
  | { readonly type: "retrying"; readonly error: StoredError }
  /** A child has the result. */
  | { readonly type: "awaiting"; readonly child: AwaitedChild };

/** What was gated as `once` is not made repeatable by a program that has changed since. */
export function isOnce(tool: Pick<Tool, "effect">, call: CallState): boolean {
  return tool.effect === "once" || call.gate?.effect === "once";
}

/** The tool's own code, with its time-out; its run context is gone afterwards (row H6). */
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
    return await withoutSecrets(redact, () => abortable(withinTrace(place.trace, work), timed.signal));
  } finally {
    run.revoke();
    cancel();
    timed.dispose();
  }
}

/** What the tool gave, as the end of its attempt. */
export function endOfOutput(
  place: AttemptPlace,
  call: CallState,
  tool: Tool<never>,
  output: RenderedOutput | AwaitedChild,
): AttemptEnd {
  if (output instanceof AwaitedChild) return { type: "awaiting", child: output };
  return { type: "settled", result: resultOfOutput(place, call, output, tool.maxOutputCharacters) };
}

/** What the tool threw, as the end of its attempt. */
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

/** What `reconcile` gave, each field read once. Throws `InvalidInputError` for anything else: then the outcome stays unknown. */
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

/** The tool's own secrets, and what it was lent to work with (S13). */
function hiding({ redact: known }: AttemptPlace, redact: Redact): Redact {
  return (text) => known(redact(text));
}

/** What a tool gives or throws, as text, without the secrets that it was called with (S13). */
async function withoutSecrets(redact: Redact, work: () => Promise<unknown>): Promise<RenderedOutput | AwaitedChild> {
  try {
    const value = await work();
    return value instanceof AwaitedChild ? awaitedOf(value) : renderOutput(value, redact);
  } catch (error) {
    throw redactError(error, redact);
  }
}

/** The class is public: what was not made by `run.await()` may hold anything. */
function awaitedOf({ childId, prefix }: AwaitedChild): AwaitedChild {
  const isText = typeof childId === "string" && (prefix === undefined || typeof prefix === "string");
  if (isText) return new AwaitedChild(childId, prefix);
  const given = `{ childId: ${describeValue(childId)}, prefix: ${describeValue(prefix)} }`;
  throw new InvalidInputError(`the tool returned an AwaitedChild of ${given}; return what run.await(child) gives`);
}
