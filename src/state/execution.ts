import { z } from "zod";
import type { DeepReadonly } from "../base/index.ts";
import { addAmounts } from "../budget/index.ts";
import { addUsage, finishReasonSchema, type Usage, usageSchema } from "./model-call.ts";
import { continuationSchema, noContinuation, type StopReason, strongestSignal } from "./stop.ts";

export const executionStatusSchema = z.enum(["pending", "in_progress", "waiting", "completed", "stopped", "failed"]);
export type ExecutionStatus = DeepReadonly<z.infer<typeof executionStatusSchema>>;

/** An error as it is stored: no stack, no cause, no secrets. */
export const storedErrorSchema = z.object({
  code: z.string(),
  message: z.string(),
  retryable: z.boolean(),
  callId: z.string().optional(),
});
export type StoredError = DeepReadonly<z.infer<typeof storedErrorSchema>>;

export const callOutcomeSchema = z.enum([
  "success",
  "error",
  "denied",
  "invalid",
  "not_found",
  "interrupted",
  "outcome_unknown",
]);
export type CallOutcome = DeepReadonly<z.infer<typeof callOutcomeSchema>>;

export const toolExecutionSchema = z.object({
  callId: z.string(),
  name: z.string(),
  outcome: callOutcomeSchema.nullable(),
  startedAt: z.number().int().nullable(),
  completedAt: z.number().int().nullable(),
  error: storedErrorSchema.optional(),
});
export type ToolExecution = DeepReadonly<z.infer<typeof toolExecutionSchema>>;

export const inferenceSchema = z.object({
  model: z.string(),
  attempt: z.number().int().positive(),
  usage: usageSchema,
  costMicros: z.number().int().nonnegative().nullable(),
  finishReason: finishReasonSchema,
  durationMs: z.number().int().nonnegative(),
});
export type Inference = DeepReadonly<z.infer<typeof inferenceSchema>>;

/**
 * One model call and the tool round that it asked for (row S3). It names messages by id; the store has their content.
 */
export const agentStepSchema = z.object({
  id: z.string(),
  number: z.number().int().positive(),
  /** The messages that were new in this call; before them comes the conversation of earlier steps. */
  inputMessageIds: z.array(z.string()),
  outputMessageIds: z.array(z.string()),
  inference: inferenceSchema.nullable(),
  toolExecutions: z.array(toolExecutionSchema),
  errors: z.array(storedErrorSchema),
});
export type AgentStep = DeepReadonly<z.infer<typeof agentStepSchema>>;

export const stepTypeSchema = z.enum(["error", "tool_execution", "final_response"]);
export type StepType = DeepReadonly<z.infer<typeof stepTypeSchema>>;

/** Derived, never stored. Precedence: error, tool execution, final response (row S3). */
export function stepTypeOf(step: AgentStep): StepType {
  if (step.errors.length > 0 || step.toolExecutions.some((one) => one.outcome !== null && one.outcome !== "success")) {
    return "error";
  }
  return step.toolExecutions.length > 0 ? "tool_execution" : "final_response";
}

/** A finished step with its times and the state of the continuation decision. */
export const stepExecutionSchema = z.object({
  step: agentStepSchema,
  continuation: continuationSchema,
  startedAt: z.number().int(),
  completedAt: z.number().int(),
});
export type StepExecution = DeepReadonly<z.infer<typeof stepExecutionSchema>>;

/** One turn, in the terms of rows S2. `executionId` is the turn's id. */
export const executionStateSchema = z.object({
  executionId: z.string(),
  status: executionStatusSchema,
  startedAt: z.number().int(),
  completedAt: z.number().int().nullable(),
  stepExecutions: z.array(stepExecutionSchema),
  continuation: continuationSchema,
  currentStepStartedAt: z.number().int().nullable(),
  currentStep: agentStepSchema.nullable(),
  /** Usage of attempts without an answer (cut, failed), which are billed too. */
  failedUsage: usageSchema.nullable(),
  /** Null: one of their prices is unknown. */
  failedCostMicros: z.number().int().nonnegative().nullable(),
  /** Errors that belong to no step. */
  errors: z.array(storedErrorSchema),
});
export type ExecutionState = DeepReadonly<z.infer<typeof executionStateSchema>>;

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

/** Steps in order, the open one last. */
export function stepsOf(execution: ExecutionState): AgentStep[] {
  const steps = execution.stepExecutions.map((one) => one.step);
  if (execution.currentStep) steps.push(execution.currentStep);
  return steps;
}

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

/** Tokens of the whole turn, failed attempts included. */
export function usageOf(execution: ExecutionState): Usage {
  let total: Usage = noUsage;
  for (const step of stepsOf(execution)) if (step.inference) total = addUsage(total, step.inference.usage);
  return execution.failedUsage ? addUsage(total, execution.failedUsage) : total;
}

/** Micro-dollars of the turn; null when the price of any call is unknown. */
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

/** All errors of the turn, those of tools included, in order. */
export function errorsOf(execution: ExecutionState): StoredError[] {
  const ofSteps = stepsOf(execution).flatMap((step) => [
    ...step.errors,
    ...step.toolExecutions.flatMap((one) => (one.error ? [one.error] : [])),
  ]);
  return [...ofSteps, ...execution.errors];
}

/** Why the turn stopped, or is about to: the strongest signal, else the reason of its last answer. */
export function stopReasonOf(execution: ExecutionState): StopReason | undefined {
  const signal = strongestSignal(execution.continuation.stopSignals);
  if (signal || execution.status !== "completed") return signal?.reason;
  return naturalStopReason(execution);
}

/** The stop reason of a turn without signals: its last answer was complete, or the model cut it short. */
export function naturalStopReason(execution: ExecutionState): StopReason {
  const finish = lastStepOf(execution)?.inference?.finishReason;
  return finish === "length" || finish === "content_filter" ? "finish_reason" : "completed";
}
