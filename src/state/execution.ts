import { z } from "zod";
import type { DeepReadonly } from "../base/index.ts";
import { finishReasonSchema, usageSchema } from "./model-call.ts";
import { continuationSchema } from "./stop.ts";

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
