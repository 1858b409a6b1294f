import { addAmounts, type Settlement } from "../budget/index.ts";
import type { Entry, EntryOf } from "./entry.ts";
import type { AgentStep, ExecutionState, StoredError, ToolExecution } from "./execution.ts";
import type { Usage } from "./model-call.ts";
import { noContinuation, type StopReason, stopReasons, type StopSignal } from "./stop.ts";
import { signalOfRefusal } from "./stop-signals.ts";

export function freshExecution(executionId: string, startedAt: number): ExecutionState {
  return {
    executionId,
    status: "in_progress",
    startedAt,
    completedAt: null,
    stepExecutions: [],
    continuation: noContinuation,
    currentStepStartedAt: null,
    currentStep: null,
    failedUsage: null,
    failedCostMicros: 0,
    errors: [],
  };
}

/**
 * The execution after one more entry; the same object if the entry does not affect it. `arrived`: messages of users and hooks since the
 * last call; results are known to the execution already.
 */
export function foldExecution(
  execution: ExecutionState,
  entry: Entry,
  arrived: readonly string[] = [],
): ExecutionState {
  switch (entry.type) {
    case "model.requested": {
      if (entry.attempt > 1) return execution;
      const inputMessageIds = [...resultIdsOf(execution.currentStep), ...arrived];
      return openStep(archiveStep(execution, entry.at), entry, inputMessageIds);
    }
    case "model.responded":
      return onStep(execution, (step) => answered(step, entry));
    case "model.failed":
      return failedAttempt(execution, entry);
    case "generate.failed":
      return withUsage(execution, settledUsage(entry), settledCost(entry.settlement));
    case "generate.responded":
      return withUsage(execution, entry.response.usage, entry.costMicros);
    case "tool.billed":
      return withUsage(execution, settledUsage(entry), settledCost(entry.settlement));
    case "tool.started":
    case "child.spawned":
      return onStep(execution, (step) => {
        const toolExecutions = onCall(step.toolExecutions, entry.callId, (call) => started(call, entry));
        return toolExecutions === step.toolExecutions ? step : { ...step, toolExecutions };
      });
    case "tool.settled":
      return onStep(execution, (step) => ({
        ...step,
        toolExecutions: onCall(step.toolExecutions, entry.callId, (call) => settled(call, entry)),
        outputMessageIds: [...step.outputMessageIds, entry.messageId],
      }));
    case "hook.applied":
      return hooked(execution, entry);
    case "stop.signalled":
    case "timer.due":
      return signalled(execution, entry.signal);
    case "intent.refused": {
      const signal = signalOfRefusal(entry);
      return signal ? signalled(execution, signal) : execution;
    }
    case "output.checked":
      return misfit(execution, entry);
    case "effect.failed":
      return withError(execution, entry.error);
    case "turn.ended":
      return { ...archiveStep(execution, entry.at), status: entry.outcome, completedAt: entry.at };
    default:
      return execution;
  }
}

/** A step's answer has the step's id; its other outputs are the results of its calls. */
function resultIdsOf(step: AgentStep | null): string[] {
  return step?.outputMessageIds.filter((id) => id !== step.id) ?? [];
}

function openStep(
  execution: ExecutionState,
  entry: EntryOf<"model.requested">,
  inputMessageIds: string[],
): ExecutionState {
  const step: AgentStep = {
    id: `${entry.turnId}:${entry.step}`,
    number: entry.step,
    inputMessageIds,
    outputMessageIds: [],
    inference: null,
    toolExecutions: [],
    errors: [],
  };
  // A request to continue applies to one decision: the requested step has now started.
  const continuation = execution.continuation.isContinuationRequested
    ? { ...execution.continuation, isContinuationRequested: false }
    : execution.continuation;
  return { ...execution, continuation, currentStep: step, currentStepStartedAt: entry.at };
}

function archiveStep(execution: ExecutionState, at: number): ExecutionState {
  const { currentStep, currentStepStartedAt, continuation } = execution;
  if (!currentStep) return execution;
  const finished = { step: currentStep, continuation, startedAt: currentStepStartedAt ?? at, completedAt: at };
  return {
    ...execution,
    stepExecutions: [...execution.stepExecutions, finished],
    currentStep: null,
    currentStepStartedAt: null,
  };
}

function answered(step: AgentStep, entry: EntryOf<"model.responded">): AgentStep {
  const { model, attempt, usage, costMicros, finishReason, durationMs } = entry;
  const toolExecutions: ToolExecution[] = entry.calls.map(({ callId, name }) => ({
    callId,
    name,
    outcome: null,
    startedAt: null,
    completedAt: null,
  }));
  return {
    ...step,
    inference: { model, attempt, usage, costMicros, finishReason, durationMs },
    outputMessageIds: [...step.outputMessageIds, entry.messageId],
    toolExecutions,
  };
}

function started(call: ToolExecution, { at }: Entry): ToolExecution {
  return { ...call, startedAt: call.startedAt ?? at };
}

function settled(call: ToolExecution, entry: EntryOf<"tool.settled">): ToolExecution {
  if (call.outcome !== null) return call;
  const error = entry.error ? { error: { ...entry.error, callId: entry.callId } } : {};
  return { ...call, outcome: entry.outcome, completedAt: entry.at, ...error };
}

function hooked(execution: ExecutionState, entry: EntryOf<"hook.applied">): ExecutionState {
  const { stop, continueRequested } = entry.patch;
  let next = execution;
  if (stop) next = signalled(next, { ...stop, source: `hook:${entry.plugin}` });
  if (continueRequested) next = { ...next, continuation: { ...next.continuation, isContinuationRequested: true } };
  return next;
}

/** The turn fails if an answer does not fit and is not requested again. */
function misfit(execution: ExecutionState, entry: EntryOf<"output.checked">): ExecutionState {
  if (entry.callId !== undefined) {
    const { valid, messageId } = entry;
    if (!valid) return execution;
    return onStep(execution, (step) => ({ ...step, outputMessageIds: [...step.outputMessageIds, messageId] }));
  }
  if (entry.valid || entry.repairMessageId !== undefined) return execution;
  const message = `the answer does not fit the output schema: ${entry.issues ?? "no reason was given"}`;
  const error = { code: "output_invalid", message, retryable: false };
  const failed = onStep(execution, (step) => ({ ...step, errors: [...step.errors, error] }));
  return signalled(failed, { reason: "error", message, source: "output" });
}

function failedAttempt(execution: ExecutionState, entry: EntryOf<"model.failed">): ExecutionState {
  const billed = withUsage(execution, settledUsage(entry), settledCost(entry.settlement));
  if (entry.retryAt !== null) return billed;
  const failed = onStep(billed, (step) => ({ ...step, errors: [...step.errors, entry.error] }));
  if (failed.continuation.stopSignals.length > 0 && entry.error.code === "turn_interrupted") return failed;
  const reason = reasonOfFailure(entry);
  return signalled(failed, { reason, message: entry.error.message, source: "model" });
}

/** The code of an error with which the provider has refused the prompt or the answer because of its content. */
export const REFUSAL_CODE = "refusal";

function reasonOfFailure({ error, isExhausted }: EntryOf<"model.failed">): StopReason {
  if (error.code === REFUSAL_CODE) return "refusal";
  return isExhausted ? "retry_limit" : "error";
}

function withError(execution: ExecutionState, error: StoredError): ExecutionState {
  const errors = [...execution.errors, error];
  return signalled({ ...execution, errors }, { reason: "error", message: error.message, source: "runtime" });
}

/** The settled cost; `null` if tokens were used and their price is unknown. */
function settledCost(settlement: Settlement | null): number | null {
  if (!settlement) return 0;
  return settlement.reservation.isUnpriced === true && settlement.tokens > 0 ? null : settlement.costMicros;
}

/**
 * The tokens of the settled cost. If a call's outcome is unknown, its complete reservation counts as used, in tokens and in money, split
 * like in the accounts.
 */
function settledUsage({
  usage,
  settlement,
}: {
  readonly usage: Usage | null;
  readonly settlement: Settlement | null;
}): Usage | null {
  if (usage || !settlement?.unconfirmed) return usage;
  const { tokens, reservation } = settlement;
  const outputTokens = Math.min(tokens, reservation.outputTokens);
  return { inputTokens: tokens - outputTokens, outputTokens, estimated: true };
}

function withUsage(execution: ExecutionState, usage: Usage | null, costMicros: number | null): ExecutionState {
  if (!usage && costMicros === 0) return execution;
  return {
    ...execution,
    failedUsage: usage ? addUsage(execution.failedUsage, usage) : execution.failedUsage,
    failedCostMicros:
      execution.failedCostMicros === null || costMicros === null
        ? null
        : addAmounts(execution.failedCostMicros, costMicros),
  };
}

/** Adds a stop signal. */
export function signalled(execution: ExecutionState, signal: StopSignal): ExecutionState {
  const { continuation } = execution;
  return { ...execution, continuation: { ...continuation, stopSignals: [...continuation.stopSignals, signal] } };
}

function onStep(execution: ExecutionState, change: (step: AgentStep) => AgentStep): ExecutionState {
  const step = execution.currentStep;
  if (!step) return execution;
  const currentStep = change(step);
  return currentStep === step ? execution : { ...execution, currentStep };
}

/** The calls of a step with one of them changed; the same list if the call is not in it. */
function onCall(
  calls: readonly ToolExecution[],
  callId: string | undefined,
  change: (call: ToolExecution) => ToolExecution,
): readonly ToolExecution[] {
  let index = calls.length - 1;
  while (index >= 0 && calls[index]?.callId !== callId) index -= 1;
  const call = calls[index];
  if (call === undefined) return calls;
  const next = calls.slice();
  next[index] = change(call);
  return next;
}

/** The steps in order; an open one is the last. */
export function stepsOf(execution: ExecutionState): AgentStep[] {
  const steps = execution.stepExecutions.map((one) => one.step);
  if (execution.currentStep) steps.push(execution.currentStep);
  return steps;
}

/** The last step of an execution, including an open one; `undefined` if there is none. */
export function lastStepOf(execution: ExecutionState): AgentStep | undefined {
  return execution.currentStep ?? execution.stepExecutions.at(-1)?.step;
}

const noUsage: Usage = Object.freeze({
  inputTokens: 0,
  outputTokens: 0,
  cachedInputTokens: 0,
  reasoningTokens: 0,
  estimated: false,
});

/** Tokens of the turn, including failed attempts. */
export function usageOf(execution: ExecutionState): Usage {
  let total: Usage = noUsage;
  for (const step of stepsOf(execution)) if (step.inference) total = addUsage(total, step.inference.usage);
  return execution.failedUsage ? addUsage(total, execution.failedUsage) : total;
}

/** Micro-dollars of the turn; `null` if the price of any call is unknown. */
export function costOfExecution(execution: ExecutionState): number | null {
  let total = execution.failedCostMicros;
  if (total === null) return null;
  for (const step of stepsOf(execution)) {
    if (!step.inference) continue;
    if (step.inference.costMicros === null) return null;
    total = addAmounts(total, step.inference.costMicros);
  }
  return total;
}

/** All errors of the turn, including those of tools, in order. */
export function errorsOf(execution: ExecutionState): StoredError[] {
  const ofSteps = stepsOf(execution).flatMap((step) => [
    ...step.errors,
    ...step.toolExecutions.flatMap((one) => (one.error ? [one.error] : [])),
  ]);
  return [...ofSteps, ...execution.errors];
}

/** Why the turn stopped, or is about to: the strongest signal, else the finish reason of its last answer. */
export function stopReasonOf(execution: ExecutionState): StopReason | undefined {
  const signal = strongestSignal(execution.continuation.stopSignals);
  if (signal) return signal.reason;
  const hasEnded = execution.status === "completed" || execution.status === "stopped";
  return hasEnded ? naturalStopReason(execution) : undefined;
}

/** The stop reason of a turn without signals: its last answer was complete, was cut off at its length, or is a refusal. */
export function naturalStopReason(execution: ExecutionState): StopReason {
  const finish = lastStepOf(execution)?.inference?.finishReason;
  if (finish === "content_filter") return "refusal";
  return finish === "length" ? "finish_reason" : "completed";
}

/** The decisive signal: the one with the highest priority; the first one if several are equal. */
export function strongestSignal(signals: readonly StopSignal[]): StopSignal | undefined {
  let strongest: StopSignal | undefined;
  for (const signal of signals) {
    if (!strongest || priorityOf(signal.reason) < priorityOf(strongest.reason)) strongest = signal;
  }
  return strongest;
}

/** 0 is the highest priority. */
export function priorityOf(reason: StopReason): number {
  return stopReasons.indexOf(reason);
}

/** The sum of two usages. */
export function addUsage(one: Usage | null, other: Usage): Usage {
  if (!one) return other;
  return {
    inputTokens: one.inputTokens + other.inputTokens,
    outputTokens: one.outputTokens + other.outputTokens,
    cachedInputTokens: (one.cachedInputTokens ?? 0) + (other.cachedInputTokens ?? 0),
    ...cacheWritesOf(one, other),
    reasoningTokens: (one.reasoningTokens ?? 0) + (other.reasoningTokens ?? 0),
    estimated: Boolean(one.estimated) || Boolean(other.estimated),
  };
}

/** Few providers report cache writes: absent if neither usage has them. */
function cacheWritesOf(one: Usage, other: Usage): Pick<Usage, "cacheWriteTokens" | "longCacheWriteTokens"> {
  const writes = sumOf(one.cacheWriteTokens, other.cacheWriteTokens);
  const long = sumOf(one.longCacheWriteTokens, other.longCacheWriteTokens);
  return {
    ...(writes === undefined ? {} : { cacheWriteTokens: writes }),
    ...(long === undefined ? {} : { longCacheWriteTokens: long }),
  };
}

function sumOf(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined && other === undefined ? undefined : (one ?? 0) + (other ?? 0);
}
