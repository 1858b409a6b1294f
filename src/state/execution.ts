import { z } from "zod";
import {
  countOrNullSchema,
  countSchema,
  flagSchema,
  integerOrNullSchema,
  integerSchema,
  optionalTextSchema,
  positiveSchema,
  textSchema,
} from "../base/index.ts";
import type { DeepReadonly } from "../base/index.ts";
import { finishReasonSchema, usageSchema } from "./model-call.ts";
import { continuationSchema } from "./stop.ts";

export const executionStatusSchema = z.enum(["pending", "in_progress", "waiting", "completed", "stopped", "failed"]);
export type ExecutionStatus = DeepReadonly<z.infer<typeof executionStatusSchema>>;

/** A stored error: no stack, no cause, no secrets. */
export const storedErrorSchema = z.object({
  code: textSchema,
  message: textSchema,
  retryable: flagSchema,
  callId: optionalTextSchema,
});
/** A stored error: a code, a message, and whether another attempt may succeed. */
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
  callId: textSchema,
  name: textSchema,
  outcome: callOutcomeSchema.nullable(),
  startedAt: integerOrNullSchema,
  completedAt: integerOrNullSchema,
  error: storedErrorSchema.optional(),
});
export type ToolExecution = DeepReadonly<z.infer<typeof toolExecutionSchema>>;

export const inferenceSchema = z.object({
  model: textSchema,
  attempt: positiveSchema,
  usage: usageSchema,
  costMicros: countOrNullSchema,
  finishReason: finishReasonSchema,
  durationMs: countSchema,
});
export type Inference = DeepReadonly<z.infer<typeof inferenceSchema>>;

/** One model call and its tool round. It refers to messages by id; the store has their content. */
export const agentStepSchema = z.object({
  id: textSchema,
  number: positiveSchema,
  /** The messages that were new in this call; the conversation of earlier steps precedes them. */
  inputMessageIds: z.array(textSchema),
  outputMessageIds: z.array(textSchema),
  inference: inferenceSchema.nullable(),
  toolExecutions: z.array(toolExecutionSchema),
  errors: z.array(storedErrorSchema),
});
export type AgentStep = DeepReadonly<z.infer<typeof agentStepSchema>>;

export const stepTypeSchema = z.enum(["error", "tool_execution", "final_response"]);
export type StepType = DeepReadonly<z.infer<typeof stepTypeSchema>>;

/** Derived, never stored. Precedence: error, tool execution, final response. */
export function stepTypeOf(step: AgentStep): StepType {
  if (step.errors.length > 0 || step.toolExecutions.some((one) => one.outcome !== null && one.outcome !== "success")) {
    return "error";
  }
  return step.toolExecutions.length > 0 ? "tool_execution" : "final_response";
}

/** A finished step with its times and the state of the decision to continue. */
export const stepExecutionSchema = z.object({
  step: agentStepSchema,
  continuation: continuationSchema,
  startedAt: integerSchema,
  completedAt: integerSchema,
});
export type StepExecution = DeepReadonly<z.infer<typeof stepExecutionSchema>>;

/** One turn. `executionId` is the turn's id. */
export const executionStateSchema = z.object({
  executionId: textSchema,
  status: executionStatusSchema,
  startedAt: integerSchema,
  completedAt: integerOrNullSchema,
  stepExecutions: z.array(stepExecutionSchema),
  continuation: continuationSchema,
  currentStepStartedAt: integerOrNullSchema,
  currentStep: agentStepSchema.nullable(),
  /** Usage of attempts without an answer (cut, failed), which are billed too. */
  failedUsage: usageSchema.nullable(),
  /** Cost of those attempts in micro-dollars; `null` if one of their prices is unknown. */
  failedCostMicros: countOrNullSchema,
  /** Errors that belong to no step. */
  errors: z.array(storedErrorSchema),
});
export type ExecutionState = DeepReadonly<z.infer<typeof executionStateSchema>>;
