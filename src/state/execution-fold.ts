import { addAmounts, type Settlement } from "../budget/index.ts";
import type { Entry, EntryOf } from "./entry.ts";
import type { AgentStep, ExecutionState, StoredError, ToolExecution } from "./execution.ts";
import { addUsage, type Usage } from "./model-call.ts";
import type { StopSignal } from "./stop.ts";
import { signalOfRefusal } from "./stop-signals.ts";

/**
 * The execution after one more entry (rows S2, S3). Entries that do not concern it return the same object.
 * `arrived`: messages of users and hooks that came since the last call; the execution knows results itself.
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
      return withUsage(execution, entry.usage, settledCost(entry.settlement));
    case "generate.responded":
      return withUsage(execution, entry.response.usage, entry.costMicros);
    case "tool.started":
    case "child.spawned":
      return onCall(execution, entry.callId, (call) => ({ ...call, startedAt: call.startedAt ?? entry.at }));
    case "tool.settled":
      return onStep(
        onCall(execution, entry.callId, (call) => settled(call, entry)),
        (step) => ({
          ...step,
          outputMessageIds: [...step.outputMessageIds, entry.messageId],
        }),
      );
    case "hook.applied":
      return hooked(execution, entry);
    case "stop.signalled":
    case "timer.due":
      return signalled(execution, entry.signal);
    case "continuation.requested":
      return { ...execution, continuation: { ...execution.continuation, isContinuationRequested: true } };
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

/** A step's answer has the step's own id; its other output is the results of its calls. */
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
  // A request to continue applies to one decision: the requested step has now begun.
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

/** The turn fails with an answer that does not fit and is not asked for again. */
function misfit(execution: ExecutionState, entry: EntryOf<"output.checked">): ExecutionState {
  if (entry.valid || entry.repairMessageId !== undefined) return execution;
  const message = `the answer does not fit the output schema: ${entry.issues ?? "no reason was given"}`;
  const error = { code: "output_invalid", message, retryable: false };
  const failed = onStep(execution, (step) => ({ ...step, errors: [...step.errors, error] }));
  return signalled(failed, { reason: "error", message, source: "output" });
}

function failedAttempt(execution: ExecutionState, entry: EntryOf<"model.failed">): ExecutionState {
  const billed = withUsage(execution, entry.usage, settledCost(entry.settlement));
  if (entry.retryAt !== null) return billed;
  const failed = onStep(billed, (step) => ({ ...step, errors: [...step.errors, entry.error] }));
  if (failed.continuation.stopSignals.length > 0 && entry.error.code === "turn_interrupted") return failed;
  const reason = entry.isExhausted ? "retry_limit" : "error";
  return signalled(failed, { reason, message: entry.error.message, source: "model" });
}

function withError(execution: ExecutionState, error: StoredError): ExecutionState {
  const errors = [...execution.errors, error];
  return signalled({ ...execution, errors }, { reason: "error", message: error.message, source: "runtime" });
}

/** The settled cost; null if something was used and its price is unknown. */
function settledCost(settlement: Settlement | null): number | null {
  if (!settlement) return 0;
  return settlement.reservation.isUnpriced === true && settlement.tokens > 0 ? null : settlement.costMicros;
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

/** Adds a stop signal to the others. */
export function signalled(execution: ExecutionState, signal: StopSignal): ExecutionState {
  const { continuation } = execution;
  return { ...execution, continuation: { ...continuation, stopSignals: [...continuation.stopSignals, signal] } };
}

function onStep(execution: ExecutionState, change: (step: AgentStep) => AgentStep): ExecutionState {
  return execution.currentStep ? { ...execution, currentStep: change(execution.currentStep) } : execution;
}

function onCall(
  execution: ExecutionState,
  callId: string | undefined,
  change: (call: ToolExecution) => ToolExecution,
): ExecutionState {
  if (callId === undefined) return execution;
  return onStep(execution, (step) => ({
    ...step,
    toolExecutions: step.toolExecutions.map((call) => (call.callId === callId ? change(call) : call)),
  }));
}
